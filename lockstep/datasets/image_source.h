// Encoded images with a class or a mask each, wherever they lie.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/datasets/files/listing.h"
#include "lockstep/image/decoder.h"

namespace lockstep::datasets {

// An image as it is stored.
struct Encoded {
  std::span<const uint8_t> bytes;
  std::optional<image::RawLayout> raw = {};  // of pixels without a format
};

// An image and its mask.
struct EncodedPair {
  Encoded image, mask;
};
struct PairMemory {
  std::vector<uint8_t> image, mask;
};

// Opens an image that is stored so. `name` begins errors. Throws DataError.
const image::ImageInfo& open_encoded(image::Decoder& decoder, const Encoded& encoded, const std::string& name,
                                     const image::DecodeOptions& options = {});

// Throws DataError(name, ": …") for an image with other channels than the network's `channels`: with alpha, where these
// are 1 or 3, without it, where they are 2 or 4, or in colours, where they are 2.
void check_channels(const image::ImageInfo& info, const std::string& name, int channels);

// Images, numbered from 0, with one class each or one mask each. Immutable; any thread.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual int64_t size() const = 0;
  // Returns an image's bytes, which lie in `memory`, or in the source itself. Throws DataError that names the image
  // where it is missing or damaged, IoError where the machine failed.
  virtual Encoded read(int64_t index, std::vector<uint8_t>& memory) const = 0;
  virtual std::string name_of(int64_t index) const = 0;                              // for errors: "photos/cats/1.jpg"
  virtual std::string short_name_of(int64_t index) const { return name_of(index); }  // in the data set: "cats/1.jpg"
  virtual std::string fingerprint() const = 0;
  virtual std::string text() const = 0;  // "250 images of 12 classes in photos"

  // Of images with classes.
  virtual int64_t class_of(int64_t /*index*/) const { return -1; }
  virtual std::vector<std::string> class_names() const { return {}; }
  virtual bool has_class_names() const { return true; }  // else they are numbers alone

  // Of images with masks. Both reads throw as read() does, and BugError where there are no masks.
  virtual bool has_masks() const { return false; }
  virtual EncodedPair read_pair(int64_t index, PairMemory& memory) const;
  virtual Encoded read_mask(int64_t index, std::vector<uint8_t>& memory) const;
  virtual std::string mask_name_of(int64_t index) const { return name_of(index); }
  // All values of all masks, ascending, where they are known without decoding them; else none.
  virtual std::vector<uint32_t> mask_values() const { return {}; }

  // The sample that came first before the samples were shuffled.
  virtual int64_t first() const { return 0; }
  virtual Listing listing() const { return {}; }
  // stamp_of() its files as they are now (files/stamp.h). Empty where nobody looks at all of them.
  virtual std::string stamp() const { return {}; }
  virtual void will_need(std::span<const int64_t> /*indices*/) const {}
};

}  // namespace lockstep::datasets
