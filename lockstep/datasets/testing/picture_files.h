// For tests: files of pictures that are made on the spot.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/datasets/files/testing/files.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::datasets::testing {

inline std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// Pictures of waves; each seed gives another one.
inline std::string jpeg(image::Size size = {40, 30}, uint64_t seed = 1, int channels = 3) {
  return text_of(image::encode_jpeg(image::testing_support::picture(size, channels, seed)));
}
inline std::string png(image::Size size = {40, 30}, uint64_t seed = 1, int channels = 3) {
  return text_of(image::encode_png(image::testing_support::picture(size, channels, seed)));
}

// Writes a file, and the folders above it.
inline std::string write_deep(const TempDir& dir, const std::string& name, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(dir / name).parent_path());
  return dir.write(name, content);
}

// Writes `each` JPEGs to prefix/cats and prefix/dogs …, of sizes that differ.
inline void write_classes(const TempDir& dir, const std::string& prefix, const std::vector<std::string>& classes,
                          int each) {
  uint64_t seed = 0;
  for (const std::string& name : classes) {
    for (int i = 0; i < each; ++i) {
      ++seed;
      const int add = static_cast<int>(seed % 7);
      write_deep(dir, prefix + name + "/" + std::to_string(i) + ".jpg", jpeg({40 + add, 30 + 2 * add}, seed));
    }
  }
}

}  // namespace lockstep::datasets::testing
