// NumPy's arrays, by our own reader.
#pragma once

#include "lockstep/image/format_reader.h"

namespace lockstep::image {

// An array of uint8 or bool, [height, width] or [height, width, 1, 3 or 4], of which a fourth channel is ignored, in
// either order. The values of a mask, [height, width] or [height, width, 1], may be of any integer type, from 0 to
// 2^32 - 1.
class NpyReader : public FormatReader {
 public:
  ImageInfo open(const EncodedImage& image) override;
  Rect decode(const Rect& crop, Size wanted, int channels, Pixels& out) override;
  void decode_values(const ImageInfo& info, std::vector<uint32_t>& values) override;

 private:
  // The element (x, y, channel).
  const uint8_t* at(int x, int y, int channel) const {
    return data_ + static_cast<size_t>(y) * step_y_ + static_cast<size_t>(x) * step_x_ +
           static_cast<size_t>(channel) * step_channel_;
  }

  std::string name_;
  Size size_;
  int channels_ = 1;  // stored
  char kind_ = 'u';   // b, i or u
  size_t item_ = 1;   // bytes an element
  bool big_endian_ = false;
  const uint8_t* data_ = nullptr;
  size_t step_x_ = 0, step_y_ = 0, step_channel_ = 0;  // bytes
};

}  // namespace lockstep::image
