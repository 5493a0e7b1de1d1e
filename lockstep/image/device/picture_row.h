// A picture in a row of bytes of fixed length, for a decoder on a device: a JPEG as it lies in its file, with all that
// was planned for it; or, where that decoder is not asked, the pixels that the host has made of it.
//
// A row is a header, the names, the weights of both axes (axis.h), and the file. The host draws the crop and computes
// the weights, in doubles; what is left for the device is decoding and sums of integers, so that resizing has the
// host's bits. Bytes after the file are zeros.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/image/geometry.h"
#include "lockstep/image/info.h"

namespace lockstep::image {

// A JPEG above that is decoded on the host, so that rows don't become as long as the largest file.
constexpr int64_t kRowBytes = int64_t{512} << 10;
// The most that a device keeps of one picture between decoding and its result, and of all at once.
constexpr int64_t kDecodedBytes = int64_t{64} << 20;

// The bytes of a row for results of this size, three channels each: kRowBytes, or more where those need it.
int64_t row_bytes(Size result);

// The weights of an axis in a row's tables: of the pixels [begin, begin + count) of the resized image.
struct AxisInRow {
  int32_t begin = 0, count = 0, taps = 0;
};

struct PictureRow {
  std::string_view name;                 // for errors: "photos/cats/1.jpg"
  std::string_view why;                  // the host has decoded it: "PNG", "CMYK JPEG"; empty: `file` is to be decoded
  std::span<const uint8_t> file;         // the JPEG, or the pixels of the result
  std::span<const uint8_t> tables = {};  // of a JPEG: int32 first and count of `across`, and of `down`, int16 weights
  Size stored = {};
  int orientation = 1;
  Geometry geometry = {};
  AxisInRow across = {}, down = {};
  int first_used = 0, used = 0;  // the rows of geometry.source on which the result depends
};

// What is planned for a JPEG.
struct JpegPlan {
  Size stored;
  int orientation = 1;
  Geometry geometry;
};

// Why no other decoder than ours is asked for an opened image: "PNG". Empty: it is a JPEG of a usual kind.
std::string kept_here(const ImageInfo& info);

// Writes a JPEG and its plan to all of `row`. Returns why it has no place there, and leaves the row as it was then; or
// nothing.
std::string store_jpeg(const JpegPlan& plan, std::span<const uint8_t> file, std::string_view name,
                       std::span<uint8_t> row);

// Begins a row of `bytes` pixels, and writes all of it but for them: they are to be written where it returns. Throws
// BugError if they have no place.
std::span<uint8_t> store_pixels(std::string_view why, std::string_view name, size_t bytes, std::span<uint8_t> row);

// Reads a row, of which the result has parts. Throws BugError for bytes that are none.
PictureRow read_row(std::span<const uint8_t> row);

}  // namespace lockstep::image
