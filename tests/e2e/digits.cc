#include "digits.h"

#include <algorithm>
#include <filesystem>

#include "lockstep/base/philox.h"
#include "program.h"

namespace lockstep::e2e {
namespace {

constexpr uint32_t kSide = 28;
constexpr int kBlock = 7;  // pixels a side of a digit's mark

RandomStream stream_of(uint32_t seed, uint32_t sample, uint32_t part) {
  return RandomStream(seed, Purpose::kSynthetic, part, sample);
}

uint32_t label_of(uint32_t seed, uint32_t sample) { return stream_of(seed, sample, 0).below(10); }

// Ten places on a grid of 4 × 4 blocks.
bool in_mark(uint32_t label, int row, int column) {
  return row / kBlock * 4 + column / kBlock == static_cast<int>(label + label / 4);
}

}  // namespace

std::string idx_file(uint32_t magic, const std::vector<uint32_t>& dimensions, const std::string& values) {
  std::string file;
  const auto append = [&file](uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(value >> shift);
  };
  append(magic);
  for (const uint32_t dimension : dimensions) append(dimension);
  return file + values;
}

std::string labels(uint32_t count, uint32_t seed) {
  std::string values;
  for (uint32_t i = 0; i < count; ++i) values += static_cast<char>(label_of(seed, i));
  return idx_file(2049, {count}, values);
}

std::string images(uint32_t count, uint32_t seed) {
  std::string values;
  for (uint32_t i = 0; i < count; ++i) {
    auto noise = stream_of(seed, i, 1);
    const uint32_t label = label_of(seed, i);
    for (uint32_t pixel = 0; pixel < kSide * kSide; ++pixel) {
      const bool marked = in_mark(label, static_cast<int>(pixel / kSide), static_cast<int>(pixel % kSide));
      values += static_cast<char>(std::min<uint32_t>(255, noise.below(100) + (marked ? 150 : 0)));
    }
  }
  return idx_file(2051, {count, kSide, kSide}, values);
}

void write_digits(const std::string& folder, uint32_t train, uint32_t test) {
  std::filesystem::create_directories(folder);
  write_file(folder + "/train-images-idx3-ubyte", images(train, 1));
  write_file(folder + "/train-labels-idx1-ubyte", labels(train, 1));
  write_file(folder + "/t10k-images-idx3-ubyte", images(test, 2));
  write_file(folder + "/t10k-labels-idx1-ubyte", labels(test, 2));
}

}  // namespace lockstep::e2e
