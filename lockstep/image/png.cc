#include "lockstep/image/png.h"

#include <libdeflate.h>
#include <spng.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/image/exif.h"
#include "lockstep/image/set_size.h"

namespace lockstep::image {
namespace {

constexpr size_t kMostChunk = 8 << 20, kMostChunks = 16 << 20;  // bytes of texts, profiles and the like

uint32_t number_at(std::span<const uint8_t> bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | bytes[at + i];
  return value;
}

// What chunks tell besides the header.
struct Extras {
  std::span<const uint8_t> exif;
  bool transparent = false;
};

// A chunk is a length, a type of 4 letters, so many bytes, and a checksum of type and bytes. All are looked at here,
// and not by libspng, which leaves out the last chunk of pixels: whether a file is sound must not depend on the part of
// it that is decoded. A type in small letters may be passed over, and is if it is damaged.
Extras extras_of(std::span<const uint8_t> bytes, const std::string& name) {
  Extras extras;
  for (size_t at = 8; at + 12 <= bytes.size();) {
    const size_t length = number_at(bytes, at);
    if (length > bytes.size() - at - 12) break;
    const std::string_view type(reinterpret_cast<const char*>(bytes.data() + at + 4), 4);
    const bool sound = libdeflate_crc32(0, bytes.data() + at + 4, length + 4) == number_at(bytes, at + 8 + length);
    const bool needed = (type[0] & 0x20) == 0;
    if (needed && !sound) {
      throw DataError(name, ": a damaged PNG (the checksum of the chunk at byte ", at,
                      " is wrong); remove or replace the file");
    }
    if (type == "IEND") return extras;
    if (type == "eXIf" && sound) extras.exif = bytes.subspan(at + 8, length);
    if (type == "tRNS" && sound) extras.transparent = true;
    at += 12 + length;
  }
  throw DataError(name, ": a damaged PNG (it ends early, after ", bytes.size(), " bytes); remove or replace the file");
}

bool is_grey(const spng_ihdr& header) {
  return header.color_type == SPNG_COLOR_TYPE_GRAYSCALE || header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA;
}

int samples_of(const spng_ihdr& header) {  // of a pixel
  switch (header.color_type) {
    case SPNG_COLOR_TYPE_TRUECOLOR:
      return 3;
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
      return 2;
    case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA:
      return 4;
    default:
      return 1;
  }
}

struct Close {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};

}  // namespace

struct PngReader::State {
  void check(int error) const {
    if (error == 0) return;
    if (error == SPNG_EMEM) throw IoError(name, ": no memory to read it; use fewer --workers");
    throw DataError(name, ": a damaged PNG (", spng_strerror(error), "); remove or replace the file");
  }

  // Reads whole rows, the first `skip` of them in vain.
  void read_rows(int format, int flags, int skip, int rows, const auto& row_of) const {
    size_t bytes = 0;
    check(spng_decoded_image_size(context.get(), format, &bytes));
    bytes /= header.height;
    check(spng_decode_image(context.get(), nullptr, 0, format, flags | SPNG_DECODE_PROGRESSIVE));
    for (int y = -skip; y < rows; ++y) {
      const int error = spng_decode_row(context.get(), row_of(std::max(y, 0)), bytes);
      if (error != SPNG_EOI) check(error);  // which follows the last row
    }
  }

  // The whole image, rows without gaps: of interlaced ones no part can be read alone.
  void read_whole(int format, int flags = 0) {
    size_t bytes = 0;
    check(spng_decoded_image_size(context.get(), format, &bytes));
    set_size(memory, bytes);
    check(spng_decode_image(context.get(), memory.data(), bytes, format, flags));
  }

  size_t row_bytes() const { return memory.size() / header.height; }

  std::unique_ptr<spng_ctx, Close> context;
  spng_ihdr header{};
  std::string name;
  std::vector<uint8_t> memory;
};

PngReader::PngReader() : state_(std::make_unique<State>()) {}
PngReader::~PngReader() = default;

ImageInfo PngReader::open(const EncodedImage& image) {
  State& state = *state_;
  state.name = image.name;
  state.context.reset(spng_ctx_new(0));
  if (!state.context) throw IoError(image.name, ": no memory to read it; use fewer --workers");
  spng_ctx* const context = state.context.get();
  constexpr uint32_t kMostPixels = 1 << 24;
  state.check(spng_set_image_limits(context, kMostPixels, kMostPixels));
  state.check(spng_set_chunk_limits(context, kMostChunk, kMostChunks));
  state.check(spng_set_crc_action(context, SPNG_CRC_USE, SPNG_CRC_DISCARD));
  state.check(spng_set_png_buffer(context, image.bytes.data(), image.bytes.size()));
  state.check(spng_get_ihdr(context, &state.header));
  const spng_ihdr& header = state.header;
  const Size size{static_cast<int>(header.width), static_cast<int>(header.height)};
  check_limits(image.name, size, header.bit_depth * samples_of(header), image.bytes.size(), image.options.limits);
  const Extras extras = extras_of(image.bytes, image.name);
  ImageInfo info{.format = Format::kPng, .stored = size, .channels = is_grey(header) ? 1 : 3, .bits = header.bit_depth};
  info.palette = header.color_type == SPNG_COLOR_TYPE_INDEXED;
  info.alpha = extras.transparent || header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA ||
               header.color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
  if (image.options.exif) {
    const int orientation = exif_orientation(extras.exif);
    info.exif_orientation = orientation != 0;
    info.orientation = std::max(1, orientation);
  }
  return info;
}

Rect PngReader::decode(const Rect& crop, Size /*wanted*/, int channels, Pixels& out) {
  State& state = *state_;
  const spng_ihdr& header = state.header;
  const bool plain_grey = header.color_type == SPNG_COLOR_TYPE_GRAYSCALE && header.bit_depth <= 8;
  const int format = channels == 1 && plain_grey ? SPNG_FMT_G8 : SPNG_FMT_RGBA8;
  const int step = format == SPNG_FMT_G8 ? 1 : 4;
  const int flags = has_alpha(channels) ? SPNG_DECODE_TRNS : 0;
  const int width = static_cast<int>(header.width);
  if (header.interlace_method == 0 && step == (channels == 1 ? 1 : 4)) {
    out.reshape({width, crop.height}, channels);
    state.read_rows(format, flags, crop.y, crop.height, [&](int y) { return out.row(y); });
    return {crop.x, 0, crop.width, crop.height};
  }
  state.read_whole(format, flags);
  out.reshape(crop.size(), channels);
  for (int y = 0; y < crop.height; ++y) {
    const uint8_t* from =
        state.memory.data() + static_cast<size_t>(crop.y + y) * state.row_bytes() + ptrdiff_t{step} * crop.x;
    uint8_t* to = out.row(y);
    if (step == out.step()) {
      std::memcpy(to, from, static_cast<size_t>(crop.width) * static_cast<size_t>(step));
    } else {
      for (int x = 0; x < crop.width; ++x) to[x] = from[ptrdiff_t{4} * x];  // grey as colour: all three are equal
    }
  }
  return {0, 0, crop.width, crop.height};
}

void PngReader::decode_values(const ImageInfo& info, std::vector<uint32_t>& values) {
  State& state = *state_;
  const int bits = state.header.bit_depth;
  const bool wide = state.header.color_type == SPNG_COLOR_TYPE_GRAYSCALE && bits == 16;
  if (!info.palette && !wide) return FormatReader::decode_values(info, values);
  state.read_whole(SPNG_FMT_PNG);
  const auto width = static_cast<size_t>(info.stored.width), height = static_cast<size_t>(info.stored.height);
  set_size(values, width * height);
  uint32_t* to = values.data();
  for (size_t y = 0; y < height; ++y) {
    const uint8_t* const row = state.memory.data() + y * state.row_bytes();
    for (size_t x = 0; x < width; ++x) {
      if (wide) {
        uint16_t value;  // in this machine's byte order
        std::memcpy(&value, row + 2 * x, sizeof(value));
        *to++ = value;
      } else {
        const size_t bit = x * static_cast<size_t>(bits);  // the first pixel is in a byte's upper bits
        *to++ = row[bit / 8] >> (8 - static_cast<size_t>(bits) - bit % 8) & ((1u << bits) - 1);
      }
    }
  }
}

}  // namespace lockstep::image
