// JPEG, by libjpeg-turbo.
#pragma once

#include <memory>

#include "lockstep/image/format_reader.h"

namespace lockstep::image {

// Decodes the rows of a crop alone, and of these about the columns that it needs. Pixels equal those of the whole
// image, on every machine: the accurate integer DCT, "fancy" upsampling, no smoothing of blocks.
class JpegReader : public FormatReader {
 public:
  JpegReader();
  ~JpegReader() override;
  ImageInfo open(const EncodedImage& image) override;
  Rect decode(const Rect& crop, Size wanted, int channels, Pixels& out) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::image
