#include "lockstep/image/gif.h"

#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/image/mask_value.h"
#include "lockstep/image/set_size.h"

namespace lockstep::image {
namespace {

struct Close {
  void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
};

}  // namespace

struct GifReader::State {
  static int read(GifFileType* gif, GifByteType* to, int bytes) {
    State& state = *static_cast<State*>(gif->UserData);
    const size_t count = std::min(static_cast<size_t>(bytes), state.rest.size());
    std::memcpy(to, state.rest.data(), count);
    state.rest = state.rest.subspan(count);
    return static_cast<int>(count);
  }

  [[noreturn]] void fail(const char* why) const {
    throw DataError(name, ": a damaged GIF (", why == nullptr ? "it ends early" : why, "); remove or replace the file");
  }
  void check(int result) const {
    if (result == GIF_ERROR) fail(GifErrorString(gif->Error));
  }

  // Passes over what stands before the first frame.
  void find_frame() const {
    for (;;) {
      GifRecordType type = UNDEFINED_RECORD_TYPE;
      check(DGifGetRecordType(gif.get(), &type));
      if (type == IMAGE_DESC_RECORD_TYPE) return check(DGifGetImageDesc(gif.get()));
      if (type != EXTENSION_RECORD_TYPE) fail("it has no image");
      int code = 0;
      GifByteType* block = nullptr;
      check(DGifGetExtension(gif.get(), &code, &block));
      while (block != nullptr) check(DGifGetExtensionNext(gif.get(), &block));
    }
  }

  // Reads the first frame's numbers of colours, in rows of the image's width.
  void read_frame() {
    find_frame();
    const GifImageDesc& frame = gif->Image;
    const int width = gif->SWidth, height = gif->SHeight;
    if (frame.Width < 1 || frame.Height < 1 || frame.Left < 0 || frame.Top < 0 || frame.Width > width - frame.Left ||
        frame.Height > height - frame.Top) {
      fail("its first frame is not within the image");
    }
    const ColorMapObject* const map = frame.ColorMap != nullptr ? frame.ColorMap : gif->SColorMap;
    if (map == nullptr) fail("it has no colours");
    colours.assign(map->Colors, map->Colors + map->ColorCount);
    set_size(numbers, static_cast<size_t>(width) * static_cast<size_t>(height));
    std::fill(numbers.begin(), numbers.end(), uint8_t{0});
    // Interlaced: every eighth row, those between, and so on.
    struct Turn {
      int first, step;
    };
    constexpr Turn kInterlaced[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}}, kPlain[] = {{0, 1}};
    for (const Turn& turn : frame.Interlace ? std::span<const Turn>(kInterlaced) : std::span<const Turn>(kPlain)) {
      for (int y = turn.first; y < frame.Height; y += turn.step) {
        uint8_t* const row =
            numbers.data() + static_cast<size_t>(frame.Top + y) * static_cast<size_t>(width) + frame.Left;
        check(DGifGetLine(gif.get(), row, frame.Width));
        if (*std::max_element(row, row + frame.Width) >= colours.size()) fail("a pixel has none of its colours");
      }
    }
  }

  std::unique_ptr<GifFileType, Close> gif;
  std::span<const uint8_t> rest;  // of the file
  std::string name;
  std::vector<GifColorType> colours;
  std::vector<uint8_t> numbers;
};

GifReader::GifReader() : state_(std::make_unique<State>()) {}
GifReader::~GifReader() = default;

ImageInfo GifReader::open(const EncodedImage& image) {
  State& state = *state_;
  state.name = image.name;
  state.rest = image.bytes;
  int error = 0;
  state.gif.reset(DGifOpen(&state, State::read, &error));
  if (!state.gif) state.fail(GifErrorString(error));
  const Size size{state.gif->SWidth, state.gif->SHeight};
  check_limits(image.name, size, 8, image.bytes.size(), image.options.limits);
  return {.format = Format::kGif, .stored = size, .palette = true};
}

Rect GifReader::decode(const Rect& crop, Size /*wanted*/, int /*channels*/, Pixels& out) {
  State& state = *state_;
  state.read_frame();
  out.reshape(crop.size(), 3);
  const auto width = static_cast<size_t>(state.gif->SWidth);
  for (int y = 0; y < crop.height; ++y) {
    const uint8_t* from = state.numbers.data() + static_cast<size_t>(crop.y + y) * width + crop.x;
    uint8_t* to = out.row(y);
    for (int x = 0; x < crop.width; ++x, to += 4) {
      const GifColorType& colour = state.colours[from[x]];
      to[0] = colour.Red;
      to[1] = colour.Green;
      to[2] = colour.Blue;
      to[3] = 255;
    }
  }
  return {0, 0, crop.width, crop.height};
}

void GifReader::decode_values(const ImageInfo& /*info*/, std::vector<uint32_t>& values) {
  const State& state = *state_;
  state_->read_frame();
  std::array<uint32_t, 256> value_of{};
  std::transform(state.colours.begin(), state.colours.end(), value_of.begin(),
                 [](const GifColorType& colour) { return mask_value(colour.Red, colour.Green, colour.Blue); });
  set_size(values, state.numbers.size());
  std::transform(state.numbers.begin(), state.numbers.end(), values.begin(),
                 [&](uint8_t number) { return value_of[number]; });
}

}  // namespace lockstep::image
