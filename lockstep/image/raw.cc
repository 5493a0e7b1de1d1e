#include "lockstep/image/raw.h"

#include "lockstep/base/error.h"

namespace lockstep::image {

ImageInfo RawReader::open(const EncodedImage& image) {
  const Size size = layout_.size;
  const size_t expected =
      static_cast<size_t>(layout_.channels) * static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
  check_limits(image.name, size, 8 * layout_.channels, image.bytes.size(), image.options.limits);
  if (image.bytes.size() != expected) {
    throw DataError(image.name, ": ", image.bytes.size(), " bytes where ", size.width, " x ", size.height,
                    " pixels of ", layout_.channels, " channels need ", expected);
  }
  bytes_ = image.bytes;
  return {.format = Format::kRaw, .stored = size, .channels = layout_.channels};
}

Rect RawReader::decode(const Rect& crop, Size /*wanted*/, int channels, Pixels& out) {
  out.reshape(crop.size(), channels);
  const size_t width = static_cast<size_t>(layout_.size.width);
  const size_t plane = width * static_cast<size_t>(layout_.size.height);
  const bool grey = layout_.channels == 1;
  const size_t step = grey || layout_.planes ? 1 : 3;         // from pixel to pixel
  const size_t next = grey ? 0 : layout_.planes ? plane : 1;  // from channel to channel
  for (int y = 0; y < crop.height; ++y) {
    const uint8_t* from =
        bytes_.data() + (static_cast<size_t>(crop.y + y) * width + static_cast<size_t>(crop.x)) * step;
    uint8_t* to = out.row(y);
    for (int x = 0; x < crop.width; ++x, from += step, to += out.step()) {
      to[0] = from[0];
      if (channels == 1) continue;
      to[1] = from[next];
      to[2] = from[2 * next];
      to[3] = 255;
    }
  }
  return {0, 0, crop.width, crop.height};
}

}  // namespace lockstep::image
