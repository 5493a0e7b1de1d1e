// One format's decoder, as Decoder drives it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/image/decoder.h"

namespace lockstep::image {

// A file in memory, and how it is to be read. What it points to lives until the image is decoded.
struct EncodedImage {
  std::span<const uint8_t> bytes;
  const std::string& name;
  const DecodeOptions& options;
};

// Coordinates are the file's, before orientation. Errors are DataErrors that begin with the name. One thread at a time.
class FormatReader {
 public:
  virtual ~FormatReader() = default;

  // Reads the header, and checks the limits. The orientation is what the file says.
  virtual ImageInfo open(const EncodedImage& image) = 0;

  // Decodes at least the rectangle `crop` as `channels`, of which 1 is asked for grey images alone, and 2 and 4 for
  // those with alpha; returns where it is in `out`. For `wanted` see Decoder::decode.
  virtual Rect decode(const Rect& crop, Size wanted, int channels, Pixels& out) = 0;

  // Decodes the whole image as the values of a mask. Here: grey levels, or mask_value() of the colours.
  virtual void decode_values(const ImageInfo& info, std::vector<uint32_t>& values);

 private:
  Pixels pixels_;
};

}  // namespace lockstep::image
