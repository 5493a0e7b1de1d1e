// Writes GIFs for tests.
#pragma once

#include <gif_lib.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "lockstep/image/pixels.h"

namespace lockstep::image::testing_support {

struct GifOptions {
  Size screen;  // the frame's size if it is empty
  int left = 0, top = 0;
  bool interlaced = false;
  int bits = 8;                     // of a palette of 2^bits colours: number n is (n, 255 - n, 7),
  std::vector<int> greys{};         // or these grey levels, and black
  std::vector<uint32_t> colours{};  // or these, 0xRRGGBB, and black
  int frames = 1;
};

inline std::vector<uint8_t> encode_gif(const Pixels& numbers, const GifOptions& options = {}) {
  std::vector<uint8_t> bytes;
  const auto write = [](GifFileType* gif, const GifByteType* from, int count) {
    auto& to = *static_cast<std::vector<uint8_t>*>(gif->UserData);
    to.insert(to.end(), from, from + count);
    return count;
  };
  const auto check = [](int result) {
    if (result == GIF_ERROR) throw std::runtime_error("giflib can't encode this");
  };
  int error = 0;
  GifFileType* const gif = EGifOpen(&bytes, write, &error);
  EGifSetGifVersion(gif, true);
  std::vector<GifColorType> colours(size_t{1} << options.bits);
  for (size_t n = 0; n < colours.size(); ++n) {
    const auto grey = static_cast<uint8_t>(n < options.greys.size() ? options.greys[n] : 0);
    const uint32_t rgb = n < options.colours.size() ? options.colours[n] : 0;
    if (!options.colours.empty()) {
      colours[n] = {static_cast<uint8_t>(rgb >> 16), static_cast<uint8_t>(rgb >> 8), static_cast<uint8_t>(rgb)};
      continue;
    }
    colours[n] = options.greys.empty() ? GifColorType{static_cast<uint8_t>(n), static_cast<uint8_t>(255 - n), 7}
                                       : GifColorType{grey, grey, grey};
  }
  ColorMapObject* const map = GifMakeMapObject(static_cast<int>(colours.size()), colours.data());
  const Size screen = options.screen.width == 0 ? numbers.size() : options.screen;
  check(EGifPutScreenDesc(gif, screen.width, screen.height, options.bits, 0, map));
  check(EGifPutComment(gif, "a comment stands before the first frame"));
  for (int frame = 0; frame < options.frames; ++frame) {
    check(EGifPutImageDesc(gif, options.left, options.top, numbers.width(), numbers.height(), options.interlaced,
                           nullptr));
    std::vector<GifPixelType> row;
    const auto put = [&](int y) {
      row.assign(numbers.row(y), numbers.row(y) + numbers.width());
      for (GifPixelType& number : row) number = static_cast<GifPixelType>(number ^ frame);
      check(EGifPutLine(gif, row.data(), numbers.width()));
    };
    if (options.interlaced) {
      for (const auto& [first, step] : {std::pair{0, 8}, {4, 8}, {2, 4}, {1, 2}}) {
        for (int y = first; y < numbers.height(); y += step) put(y);
      }
    } else {
      for (int y = 0; y < numbers.height(); ++y) put(y);
    }
  }
  GifFreeMapObject(map);
  check(EGifCloseFile(gif, &error));
  return bytes;
}

}  // namespace lockstep::image::testing_support
