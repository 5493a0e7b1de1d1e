// Makes the packed record of a sample: its bytes as they are, or resized and encoded anew.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/datasets/options/pack_options.h"
#include "lockstep/datasets/packed/format.h"
#include "lockstep/datasets/whole_sample.h"

namespace lockstep::datasets {

// A record that owns its bytes.
struct PackedSample {
  PackedRecord head;  // its spans are empty
  std::vector<uint8_t> image, mask;
  std::vector<uint32_t> mask_values;  // that occur in the mask, ascending
  std::string name;
  int64_t source = 0;         // the sample's number
  uint64_t stored_bytes = 0;  // before it was packed

  PackedRecord record() const;
};

// Decodes every sample whole, so that none is packed that can't be trained on. An image is encoded anew if it is
// resized or if it is of another codec; its mask is then stored as a PNG, turned as the image, with the values that it
// has. So is what training, which knows nothing of options.exif, would turn in another way: with Exif::kOff each image
// and each mask that has an orientation, with kBoth and kImage each pair whose image has one. One thread.
class Recoder {
 public:
  // Both outlive it.
  Recoder(const ImageSource& source, const PackOptions& options);

  // Throws DataError that names a sample that can't be decoded, or stored as it is wanted; IoError where the machine
  // failed.
  PackedSample operator()(int64_t index);

 private:
  struct Files {
    bool image = false, mask = false;
  };

  PackedSample kept() const;
  // Which files of the opened sample training would turn otherwise than they are turned here, if they were kept.
  Files turned_otherwise(int64_t index);
  void encode_image(Codec to, PackedSample& sample) const;

  const ImageSource& source_;
  const PackOptions& options_;
  WholeSample whole_;
  image::Decoder header_;
  std::shared_ptr<const image::Pipeline> as_it_is_, smaller_;
};

// What is done to images, for the manifest: "as they are", "at most 256 pixels, JPEG of quality 90".
std::string packing_of(const PackOptions& options);

}  // namespace lockstep::datasets
