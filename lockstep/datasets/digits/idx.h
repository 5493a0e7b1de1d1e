// MNIST's idx files: images (magic 2051) and labels (2049), with big-endian headers and one byte a value. The content,
// not the name, says whether a file is packed with gzip.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::datasets {

struct IdxImages {
  int64_t count = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<uint8_t> pixels;  // count × rows × columns, 0 = background
};

// Both throw DataError that names the file and the fault: missing, of another kind, shorter or longer than its header
// promises, too large. Nothing is allocated on the word of a header that contradicts the file's size.
IdxImages read_idx_images(const std::string& path);
std::vector<uint8_t> read_idx_labels(const std::string& path);

}  // namespace lockstep::datasets
