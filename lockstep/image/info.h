// What an image's header says, and what is refused by it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lockstep/image/pixels.h"

namespace lockstep::image {

enum class Format : uint8_t { kJpeg, kPng, kGif, kNpy, kRaw };

struct ImageInfo {
  Format format = Format::kRaw;
  Size stored;                    // as in the file
  int orientation = 1;            // EXIF's, 1 to 8; 1 where it is not applied
  bool exif_orientation = false;  // the file has one
  int channels = 3;               // 1: grey; 3: colour, which palettes and CMYK count as
  bool alpha = false;
  bool palette = false;
  bool inks = false;              // CMYK
  int bits = 8;                   // a channel
  const char* unusual = nullptr;  // a JPEG of a kind that decoders on GPUs don't take: "CMYK JPEG"
  Size upright() const;           // the size after orientation
  int with_alpha() const { return channels + (alpha ? 1 : 0); }  // channels
};

// What an image may take. An image beyond it is refused before memory is taken.
struct Limits {
  int64_t pixels = 178'956'970;  // Pillow's
  int scans = 500;               // of a progressive JPEG
  int64_t scanned = 1LL << 33;   // pixels times scans
  int64_t expansion = 4096;      // bytes for each byte of the file, beyond the first 16 MiB
};

// The format that the first bytes tell; nothing if it is none that is read here.
std::optional<Format> format_of(std::span<const uint8_t> bytes);

// "JPEG", "PNG", …
const char* format_name(Format format);

// Throws DataError(name, ": …") if a header asks for more than the limits. A pixel of the file has `bits` without
// compression.
void check_limits(const std::string& name, Size size, int bits, size_t file_bytes, const Limits& limits);

}  // namespace lockstep::image
