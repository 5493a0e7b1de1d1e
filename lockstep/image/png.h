// PNG, by libspng.
#pragma once

#include <memory>

#include "lockstep/image/format_reader.h"

namespace lockstep::image {

// Inflates the rows down to a crop's last one alone. Transparency is alpha where that is asked for, and else ignored;
// of 16 bits the upper 8 are taken. The values of a mask are the numbers of a palette, or grey levels, of which 16 bits
// are kept.
class PngReader : public FormatReader {
 public:
  PngReader();
  ~PngReader() override;
  ImageInfo open(const EncodedImage& image) override;
  Rect decode(const Rect& crop, Size wanted, int channels, Pixels& out) override;
  void decode_values(const ImageInfo& info, std::vector<uint32_t>& values) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::image
