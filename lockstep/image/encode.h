// Encodes images: for packed data, contact sheets and tests.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/image/pixels.h"

namespace lockstep::image {

enum class Subsampling : uint8_t { k444, k422, k420, k440, k411, k410 };

struct JpegOptions {
  int quality = 90;  // 1 to 100
  Subsampling subsampling = Subsampling::k420;
  bool progressive = false;
  bool interleaved = true;  // else each channel is a scan of its own
  int restart_rows = 0;     // rows of blocks between restart markers; 0: none
  int orientation = 0;      // EXIF's, 1 to 8; 0: no EXIF
  bool cmyk = false;        // stores the image as CMYK, as Adobe's programs do
};
// Throws BugError for what can't be encoded.
std::vector<uint8_t> encode_jpeg(const Pixels& pixels, const JpegOptions& options = {});

enum class PngColour : uint8_t { kAsPixels, kPalette, kAlpha };

struct PngOptions {
  // kPalette: the pixels, of one channel, are numbers of the palette of grey levels 255 - n. kAlpha adds a channel.
  PngColour colour = PngColour::kAsPixels;
  int bits = 8;  // 1, 2, 4 (one channel; its lowest bits), 8, 16 (v · 257)
  bool interlaced = false;
  int orientation = 0;  // EXIF's, 1 to 8; 0: no EXIF
};
// Throws BugError for what can't be encoded.
std::vector<uint8_t> encode_png(const Pixels& pixels, const PngOptions& options = {});

}  // namespace lockstep::image
