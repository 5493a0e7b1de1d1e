// Reads samples whole, as they are stored: before they are packed, or to look at them.
#pragma once

#include <vector>

#include "lockstep/datasets/image_source.h"
#include "lockstep/image/pipeline.h"

namespace lockstep::datasets {

// One sample after the other, with memory that it keeps. One thread at a time.
class WholeSample {
 public:
  // Images and masks are turned as `turned` says (image_setup.h: turned_by()). The source outlives this.
  WholeSample(const ImageSource& source, const image::DecodeOptions& turned) : source_(source), turned_(turned) {}

  // Reads the bytes of a sample and its headers. Throws DataError that names its file, and IoError.
  void open(int64_t index);
  // No mask's bytes where there is none. After an open() that failed: what it had read.
  const EncodedPair& stored() const { return stored_; }
  uint64_t bytes() const { return stored_.image.bytes.size() + stored_.mask.bytes.size(); }
  // Of the image. Its orientation is applied, the mask's follows it.
  const image::ImageInfo& info() const { return image_.info(); }

  // Decodes the opened sample through `pipeline`, which draws nothing: to one channel if it is grey, else to three,
  // and beside a mask with its alpha.
  // Throws as open() does, also for a mask of another size than its image and for one of more than 256 values.
  void decode(const image::Pipeline& pipeline);
  const image::Pixels& image() const { return sample_.image; }
  const image::Pixels& mask() const { return sample_.mask; }  // numbers of mask_values(); or empty
  const std::vector<uint32_t>& mask_values() const { return sample_.mask_values; }  // of the whole mask, ascending
  int64_t decode_ns() const { return times_.decode_ns; }                            // what the last decode() took

 private:
  const ImageSource& source_;
  image::DecodeOptions turned_;
  PairMemory memory_;
  EncodedPair stored_;
  image::Decoder image_, mask_;
  image::Scratch scratch_;
  image::Sample sample_;
  image::Pipeline::Times times_;
};

}  // namespace lockstep::datasets
