#include <spng.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/exif_block.h"

namespace lockstep::image {
namespace {

void check(int error) {
  if (error != 0) throw BugError("encoding a PNG: ", spng_strerror(error));
}

uint8_t colour_type_of(const Pixels& pixels, PngColour colour) {
  const bool grey = pixels.channels() < 3;
  if (colour == PngColour::kPalette) return SPNG_COLOR_TYPE_INDEXED;
  if (colour == PngColour::kAlpha || pixels.has_alpha())
    return grey ? SPNG_COLOR_TYPE_GRAYSCALE_ALPHA : SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
  return grey ? SPNG_COLOR_TYPE_GRAYSCALE : SPNG_COLOR_TYPE_TRUECOLOR;
}

// A row of samples as PNG stores it: packed where they have fewer than 8 bits, doubled where they have 16.
void append_row(const std::vector<uint8_t>& samples, int bits, std::vector<uint8_t>& to) {
  if (bits >= 8) {
    for (const uint8_t sample : samples) to.insert(to.end(), static_cast<size_t>(bits / 8), sample);
    return;
  }
  const size_t begin = to.size(), width = static_cast<size_t>(bits);
  to.resize(begin + (samples.size() * width + 7) / 8);
  for (size_t x = 0; x < samples.size(); ++x) {
    const size_t bit = x * width;
    to[begin + bit / 8] |= static_cast<uint8_t>((samples[x] & ((1u << bits) - 1)) << (8 - width - bit % 8));
  }
}

std::vector<uint8_t> rows_of(const Pixels& pixels, const PngOptions& options) {
  std::vector<uint8_t> rows, samples;
  for (int y = 0; y < pixels.height(); ++y) {
    samples.clear();
    for (int x = 0; x < pixels.width(); ++x) {
      const uint8_t* const pixel = pixels.at(x, y);
      for (int c = 0; c < pixels.channels(); ++c) samples.push_back(pixel[pixels.byte_of(c)]);
      if (options.colour == PngColour::kAlpha) samples.push_back(128);
    }
    append_row(samples, options.bits, rows);
  }
  return rows;
}

}  // namespace

std::vector<uint8_t> encode_png(const Pixels& pixels, const PngOptions& options) {
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context(spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free);
  if (!context) throw IoError("no memory to encode a PNG");
  check(spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1));
  spng_ihdr header{.width = static_cast<uint32_t>(pixels.width()),
                   .height = static_cast<uint32_t>(pixels.height()),
                   .bit_depth = static_cast<uint8_t>(options.bits),
                   .color_type = colour_type_of(pixels, options.colour),
                   .compression_method = 0,
                   .filter_method = 0,
                   .interlace_method = static_cast<uint8_t>(options.interlaced ? 1 : 0)};
  check(spng_set_ihdr(context.get(), &header));
  if (options.colour == PngColour::kPalette) {
    spng_plte palette{};
    palette.n_entries = 1u << std::min(options.bits, 8);
    for (uint32_t i = 0; i < palette.n_entries; ++i) {
      const auto level = static_cast<uint8_t>(255 - i);
      palette.entries[i] = {level, level, level, 255};
    }
    check(spng_set_plte(context.get(), &palette));
  }
  uint8_t block[kExifBlockBytes];
  if (options.orientation != 0) {
    write_exif_block(options.orientation, block);
    spng_exif exif{.length = sizeof(block), .data = reinterpret_cast<char*>(block)};
    check(spng_set_exif(context.get(), &exif));
  }
  const auto rows = rows_of(pixels, options);
  check(spng_encode_image(context.get(), rows.data(), rows.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE));
  size_t bytes = 0;
  int error = 0;
  const std::unique_ptr<void, void (*)(void*)> memory(spng_get_png_buffer(context.get(), &bytes, &error), std::free);
  check(error);
  const auto* const begin = static_cast<const uint8_t*>(memory.get());
  return {begin, begin + bytes};
}

}  // namespace lockstep::image
