#include "lockstep/image/format_reader.h"

#include "lockstep/image/mask_value.h"
#include "lockstep/image/set_size.h"

namespace lockstep::image {

void FormatReader::decode_values(const ImageInfo& info, std::vector<uint32_t>& values) {
  const Size size = info.stored;
  decode({0, 0, size.width, size.height}, size, info.channels, pixels_);
  set_size(values, static_cast<size_t>(size.width) * static_cast<size_t>(size.height));
  uint32_t* to = values.data();
  for (int y = 0; y < size.height; ++y) {
    const uint8_t* from = pixels_.row(y);
    for (int x = 0; x < size.width; ++x, from += pixels_.step()) {
      *to++ = info.channels == 1 ? from[0] : mask_value(from[0], from[1], from[2]);
    }
  }
}

}  // namespace lockstep::image
