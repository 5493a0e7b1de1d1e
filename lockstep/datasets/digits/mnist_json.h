// MNIST as Paddle's course has it: one JSON file, packed with gzip or not, of [train, validation, test]. Each part is
// [images, labels], each image 784 numbers from 0 to 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::datasets {

struct MnistJsonPart {
  std::vector<float> pixels;    // 784 for each image
  std::vector<uint8_t> labels;  // 0 to 9, as many as images
};

struct MnistJson {
  MnistJsonPart train;
  MnistJsonPart validation;
  MnistJsonPart test;
};

// Reads the file number by number, without building a tree of it. Throws DataError that names the file, the part, the
// image and the pixel, or the byte, and what is wrong there.
MnistJson read_mnist_json(const std::string& path);

}  // namespace lockstep::datasets
