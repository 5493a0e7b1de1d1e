// For tests: MNIST files, sound or spoiled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/datasets/files/testing/files.h"

namespace lockstep::datasets::testing {

inline std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

inline std::string idx_header(uint32_t magic, const std::vector<uint32_t>& dims) {
  std::string header = big_endian(magic);
  for (const uint32_t dim : dims) header += big_endian(dim);
  return header;
}

// Pixel i of the file is 7·i mod 256.
inline std::string idx_images(uint32_t count, uint32_t rows = 28, uint32_t columns = 28) {
  std::string file = idx_header(2051, {count, rows, columns});
  for (uint32_t i = 0; i < count * rows * columns; ++i) file += static_cast<char>(7 * i);
  return file;
}

// Label i is i mod 10.
inline std::string idx_labels(uint32_t count) {
  std::string file = idx_header(2049, {count});
  for (uint32_t i = 0; i < count; ++i) file += static_cast<char>(i % 10);
  return file;
}

// A sound MNIST of 12 + 5 digits.
inline void write_mnist(const TempDir& dir, const std::string& ending = "") {
  const auto packed = [&](const std::string& bytes) { return ending == ".gz" ? gzip(bytes) : bytes; };
  dir.write("train-images-idx3-ubyte" + ending, packed(idx_images(12)));
  dir.write("train-labels-idx1-ubyte" + ending, packed(idx_labels(12)));
  dir.write("t10k-images-idx3-ubyte" + ending, packed(idx_images(5)));
  dir.write("t10k-labels-idx1-ubyte" + ending, packed(idx_labels(5)));
}

// An image as JSON, every pixel the same.
inline std::string json_image(const std::string& pixel, int pixels = 784) {
  std::string text = "[";
  for (int i = 0; i < pixels; ++i) text += (i ? ", " : "") + pixel;
  return text + "]";
}

// [images, labels] of as many images as labels, pixels 0.25.
inline std::string json_part(const std::vector<int>& labels) {
  std::string images;
  std::string list;
  for (const int label : labels) {
    images += (images.empty() ? "" : ",") + json_image("0.25");
    list += (list.empty() ? "" : ",") + std::to_string(label);
  }
  return "[[" + images + "],[" + list + "]]";
}

}  // namespace lockstep::datasets::testing
