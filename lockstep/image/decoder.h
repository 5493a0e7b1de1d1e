// Decodes images of any format, whole or in part.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/image/info.h"
#include "lockstep/image/pixels.h"

namespace lockstep::image {

// What becomes of a mask without an EXIF orientation of its own, beside an image that has one.
enum class MaskTurn : uint8_t {
  kBySize,  // it is turned as its image if it has the stored image's size, and not if it has the upright image's; where
            // both are equal, that can't be told, and the mask is refused
  kAsImage,  // it is turned as its image: both are stored in the same way
  kNone,     // it is upright already
  kIfItFits  // as kBySize, but as its image where that can't be told: for masks that are checked and not used
};

struct DecodeOptions {
  int channels = 3;   // of the result: 1, 3, or, of an image with alpha, 2 or 4 with it
  bool exif = true;   // turn the image as its EXIF orientation says
  bool fast = false;  // scale JPEGs while decoding: other pixels, in less time
  MaskTurn mask_turn = MaskTurn::kBySize;
  Limits limits = {};
};

// How pixels lie that no format describes.
struct RawLayout {
  Size size;
  int channels = 3;     // 1 or 3
  bool planes = false;  // all of red, all of green, all of blue; else R G B R G B
};

// Decodes one image after the other with memory that it keeps. One thread at a time.
class Decoder {
 public:
  Decoder();
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  // Reads the header. `bytes` must live until the image is decoded. `name` begins errors. Throws DataError.
  const ImageInfo& open(std::span<const uint8_t> bytes, const std::string& name, const DecodeOptions& options = {});
  const ImageInfo& open_raw(std::span<const uint8_t> bytes, const RawLayout& layout, const std::string& name,
                            const DecodeOptions& options = {});
  const ImageInfo& info() const;
  const std::string& name() const;
  const DecodeOptions& options() const;

  // Replaces the orientation of the opened image: for a mask, which is turned as its image.
  void orient(int orientation);

  // Decodes at least the pixels of `crop`, in upright coordinates and within the image, and returns where they are in
  // `out`. They equal the same part of the whole image. With options().fast, a JPEG may come at a half, a quarter or an
  // eighth of its size, as long as `crop` is at least `wanted` then; the rectangle that is returned is as much smaller.
  // Called once after an open(). Throws DataError that names the image, and IoError if memory is short.
  Rect decode(const Rect& crop, Size wanted, Pixels& out);

  // Decodes the whole image, upright, as the values of a mask, row by row: see mask_value.h. In place of decode().
  void decode_values(std::vector<uint32_t>& values);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::image
