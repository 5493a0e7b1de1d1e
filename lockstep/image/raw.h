// Pixels that no format describes, as CIFAR's.
#pragma once

#include "lockstep/image/format_reader.h"

namespace lockstep::image {

class RawReader : public FormatReader {
 public:
  void set_layout(const RawLayout& layout) { layout_ = layout; }  // before open()
  ImageInfo open(const EncodedImage& image) override;
  Rect decode(const Rect& crop, Size wanted, int channels, Pixels& out) override;

 private:
  RawLayout layout_;
  std::span<const uint8_t> bytes_;
};

}  // namespace lockstep::image
