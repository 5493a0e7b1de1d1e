// GIF, by giflib: the first frame.
#pragma once

#include <memory>

#include "lockstep/image/format_reader.h"

namespace lockstep::image {

// A frame that is smaller than the image lies on colour 0. The values of a mask are those of the palette's colours.
class GifReader : public FormatReader {
 public:
  GifReader();
  ~GifReader() override;
  ImageInfo open(const EncodedImage& image) override;
  Rect decode(const Rect& crop, Size wanted, int channels, Pixels& out) override;
  void decode_values(const ImageInfo& info, std::vector<uint32_t>& values) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::image
