// The orientation that a camera wrote into an image's EXIF data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::image {

// The orientation, 1 to 8, of a block of EXIF data ("II*" or "MM" and on); 0 if it has none or can't be read: damaged
// EXIF data is no reason to refuse an image.
int exif_orientation(std::span<const uint8_t> block);

// What the segments of a JPEG tell that stand before its first scan.
struct JpegSegments {
  std::span<const uint8_t> exif;  // the first block of EXIF data; empty without one
  size_t end = 0;                 // where the first scan begins, or what can't be read as a segment
};
JpegSegments jpeg_segments(std::span<const uint8_t> jpeg);

}  // namespace lockstep::image
