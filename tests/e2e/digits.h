// A small MNIST made on the spot: blurred marks whose place tells the digit, under noise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::e2e {

// An idx file: magic 2051 for images, 2049 for labels; then the dimensions and a byte a value.
std::string idx_file(uint32_t magic, const std::vector<uint32_t>& dimensions, const std::string& values);

// `count` labels, or the images that belong to them; other ones for every seed.
std::string labels(uint32_t count, uint32_t seed);
std::string images(uint32_t count, uint32_t seed);

// The four idx files of a train and a test part in `folder`, which is made.
void write_digits(const std::string& folder, uint32_t train, uint32_t test);

}  // namespace lockstep::e2e
