// Writes EXIF data that hold an orientation and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::image {

constexpr size_t kExifBlockBytes = 26;

// Writes kExifBlockBytes bytes: the head of a TIFF file, and one folder of one entry.
inline void write_exif_block(int orientation, uint8_t* to) {
  const uint8_t block[kExifBlockBytes] = {'M',  'M',  0, 42, 0, 0, 0, 8, 0, 1,
                                          0x01, 0x12, 0, 3,  0, 0, 0, 1, 0, static_cast<uint8_t>(orientation)};
  for (size_t i = 0; i < kExifBlockBytes; ++i) to[i] = block[i];
}

}  // namespace lockstep::image
