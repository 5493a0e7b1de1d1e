// PNGs that are damaged, hostile or odd.
#pragma once

#include <libdeflate.h>

#include <memory>

#include "lockstep/image/encode.h"
#include "lockstep/image/testing/bad_picture.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image::testing_support {

inline FileBytes png_chunk(std::string_view type, const FileBytes& body) {
  const FileBytes summed = bytes_of(type) + body;
  return big_endian(body.size(), 4) + summed + big_endian(libdeflate_crc32(0, summed.data(), summed.size()), 4);
}

inline FileBytes zlib(const FileBytes& bytes) {
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
      libdeflate_alloc_compressor(9), libdeflate_free_compressor);
  FileBytes packed(libdeflate_zlib_compress_bound(compressor.get(), bytes.size()));
  packed.resize(libdeflate_zlib_compress(compressor.get(), bytes.data(), bytes.size(), packed.data(), packed.size()));
  return packed;
}

struct PngHeader {
  uint32_t width = 40, height = 30;
  uint8_t bits = 8, colour_type = 2, compression = 0, filter = 0, interlace = 0;
};

inline const FileBytes& png_signature() {
  static const FileBytes kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  return kSignature;
}

inline FileBytes header_chunk(const PngHeader& header) {
  return png_chunk("IHDR",
                   big_endian(header.width, 4) + big_endian(header.height, 4) +
                       FileBytes{header.bits, header.colour_type, header.compression, header.filter, header.interlace});
}

// A PNG of chunks between its header and its end.
inline FileBytes png_of(const PngHeader& header, const FileBytes& chunks) {
  return png_signature() + header_chunk(header) + chunks + png_chunk("IEND", {});
}

// The pixels of a header of 8-bit colours without interlacing, all of them black.
inline FileBytes black_rows(size_t width, size_t height) {
  return png_chunk("IDAT", zlib(FileBytes(height * (1 + 3 * width))));
}

inline void add_png_sizes(BadPictures& to) {
  const FileBytes rows = black_rows(40, 30);
  const auto add = [&](const char* name, const PngHeader& header, const char* why) {
    to.push_back({name, png_of(header, rows), Outcome::kRefused, why});
  };
  add("100,000 x 100,000", {.width = 100'000, .height = 100'000}, "100000 x 100000 pixels are more than 178956970");
  add("100,000 x 100,000 of a bit", {.width = 100'000, .height = 100'000, .bits = 1, .colour_type = 0},
      "are more than");
  add("2147483647 x 2147483647", {.width = 0x7fffffff, .height = 0x7fffffff}, "");
  add("4294967295 x 1", {.width = 0xffffffff, .height = 1}, "");
  add("no width", {.width = 0}, "");
  add("no height", {.height = 0}, "");
  add("13,000 x 13,000", {.width = 13'000, .height = 13'000}, "bytes can hold");
  add("13,000 x 13,000 interlaced", {.width = 13'000, .height = 13'000, .interlace = 1}, "bytes can hold");
  add("13,000 x 13,000 of 16 bits", {.width = 13'000, .height = 13'000, .bits = 16, .colour_type = 6, .interlace = 1},
      "bytes can hold");
  add("2000 x 2000", {.width = 2000, .height = 2000}, "a damaged PNG");
  add("2000 x 2000 interlaced", {.width = 2000, .height = 2000, .interlace = 1}, "a damaged PNG");
  add("bits of 3", {.bits = 3}, "a damaged PNG");
  add("a colour type of 5", {.colour_type = 5}, "a damaged PNG");
  add("4 bits a colour", {.bits = 4}, "a damaged PNG");
  add("another compression", {.compression = 1}, "a damaged PNG");
  add("another filter", {.filter = 1}, "a damaged PNG");
  add("another interlacing", {.interlace = 2}, "a damaged PNG");
  // What unpacks to so much is a picture all the same: its size is told beforehand, and is within bounds.
  to.push_back({"a bomb of 3000 x 2000", png_of({.width = 3000, .height = 2000}, black_rows(3000, 2000)),
                Outcome::kDecoded, ""});
  const auto interlaced = encode_png(flat({2000, 1500}, 3, 9), {.interlaced = true});
  to.push_back({"an interlaced bomb of 2000 x 1500", interlaced, Outcome::kDecoded, ""});
  to.push_back({"a bomb beyond its rows", png_of({}, black_rows(3000, 2000)), Outcome::kEither, ""});
}

inline void add_png_chunks(BadPictures& to) {
  const FileBytes rows = black_rows(40, 30), zeros(32 << 20);
  const auto add = [&](const char* name, const FileBytes& chunks, Outcome outcome, const char* why = "") {
    to.push_back({name, png_of({}, chunks), outcome, why});
  };
  const FileBytes keyword = bytes_of(std::string_view("text\0\0", 6));
  add("a text that unpacks to 32 MiB", png_chunk("zTXt", keyword + zlib(zeros)) + rows, Outcome::kEither);
  add("a profile that unpacks to 32 MiB", png_chunk("iCCP", keyword + zlib(zeros)) + rows, Outcome::kEither);
  add("30,000 chunks", repeated(png_chunk("tEXt", keyword), 30'000) + rows, Outcome::kEither);
  add("no pixels", {}, Outcome::kRefused);
  add("pixels of nothing", png_chunk("IDAT", {}), Outcome::kRefused);
  add("pixels that are no zlib", png_chunk("IDAT", bytes_of("these are no pixels")), Outcome::kRefused,
      "a damaged PNG");
  add("a chunk that must be known", png_chunk("ABCD", {1, 2, 3}) + rows, Outcome::kRefused, "a damaged PNG");
  add("a second header", header_chunk({.width = 4000}) + rows, Outcome::kRefused, "a damaged PNG");
  add("a damaged text", with(png_chunk("tEXt", keyword), 9, {'x'}) + rows, Outcome::kDecoded);
  add("a page behind the pixels", rows + bytes_of("<html></html>"), Outcome::kRefused);
  to.push_back({"a palette that is not there", png_of({.colour_type = 3}, rows), Outcome::kRefused, "a damaged PNG"});
  const FileBytes two_colours = png_chunk("PLTE", {0, 0, 0, 255, 255, 255}),
                  numbers = png_chunk("IDAT", zlib(FileBytes(30 * 41, 7)));
  to.push_back({"colours beyond the palette", png_of({.colour_type = 3}, two_colours + numbers), Outcome::kEither, ""});
  to.push_back({"no end", png_signature() + header_chunk({}) + rows, Outcome::kRefused, "it ends early"});
  to.push_back({"a chunk of 4 GiB",
                png_signature() + header_chunk({}) + bytes_of("\xff\xff\xff\xff") + bytes_of("IDAT"), Outcome::kRefused,
                "it ends early"});
  to.push_back({"an end behind the end", png_of({}, rows) + png_chunk("IEND", {}), Outcome::kDecoded, ""});
}

// An animation is read as the picture that programs without animations show. What its frames say is not looked at.
inline void add_animations(BadPictures& to) {
  const FileBytes rows = black_rows(40, 30);
  const FileBytes frame = png_chunk("fcTL", big_endian(0, 4) + big_endian(40, 4) + big_endian(30, 4) + FileBytes(14));
  const auto add = [&](const char* name, const FileBytes& chunks) {
    to.push_back({name, png_of({}, chunks), Outcome::kDecoded, ""});
  };
  const auto count = [](uint64_t frames) { return png_chunk("acTL", big_endian(frames, 4) + big_endian(0, 4)); };
  add("an APNG", count(2) + frame + rows + frame + png_chunk("fdAT", big_endian(1, 4) + FileBytes(50)));
  add("an APNG of 2147483647 frames", count(0x7fffffff) + frame + rows);
  add("an APNG that goes on", count(1) + frame + rows + repeated(png_chunk("fdAT", FileBytes(500)), 1000));
  const FileBytes huge =
      png_chunk("fcTL", big_endian(0, 4) + big_endian(100'000, 4) + big_endian(100'000, 4) + FileBytes(14));
  add("an APNG of a huge frame", count(1) + huge + rows);
}

inline BadPictures bad_pngs() {
  BadPictures all;
  add_damaged(all, "a PNG", encode_png(picture({33, 21}), {.orientation = 5}), 10, 8);
  add_damaged(all, "an interlaced PNG",
              encode_png(picture({33, 21}), {.colour = PngColour::kAlpha, .interlaced = true}), 6, 6);
  add_png_sizes(all);
  add_png_chunks(all);
  add_animations(all);
  return all;
}

}  // namespace lockstep::image::testing_support
