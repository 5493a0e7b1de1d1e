// For tests: data sets to pack, and what packing made of them.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "lockstep/datasets/packing/pack.h"
#include "lockstep/datasets/testing/picture_files.h"

namespace lockstep::datasets::testing {

// The left part of class 0, the rest of classes 7 and 200, in bands.
inline image::Pixels bands(image::Size size) {
  image::Pixels pixels = image::testing_support::flat(size, 1, 0);
  for (int y = 0; y < size.height; ++y) {
    for (int x = size.width / 3; x < size.width; ++x) *pixels.at(x, y) = y < size.height / 2 ? 7 : 200;
  }
  return pixels;
}

// Writes `count` images with masks, below imgs/ and masks/; one in three images is turned.
inline void write_pairs(const TempDir& dir, const std::string& prefix, int count, image::Size size = {60, 40}) {
  for (int i = 0; i < count; ++i) {
    const auto pixels = image::testing_support::picture(size, 3, static_cast<uint64_t>(i));
    write_deep(dir, cat(prefix, "imgs/", i, ".jpg"),
               text_of(image::encode_jpeg(pixels, {.orientation = i % 3 == 1 ? 6 : 0})));
    write_deep(dir, cat(prefix, "masks/", i, ".png"), text_of(image::encode_png(bands(size))));
  }
}

// The relative path of each file, with what it holds.
inline std::map<std::string, std::string> contents_of(const std::string& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    contents[std::filesystem::relative(entry.path(), folder)] = {std::istreambuf_iterator<char>(file), {}};
  }
  return contents;
}

// The names in a folder.
inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace lockstep::datasets::testing
