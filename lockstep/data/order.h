// The order in which an epoch goes through a data set.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::data {

struct Pick {
  int64_t index = 0;    // of the sample
  uint64_t number = 0;  // Draw::number: the sample's, or the draw's where samples repeat
  bool operator==(const Pick&) const = default;
};

// A pure function of the epoch and the position, so that a run is resumed at any of them at once. Any thread.
class Order {
 public:
  virtual ~Order() = default;
  virtual int64_t size() const = 0;                             // picks an epoch
  virtual Pick at(uint32_t epoch, int64_t position) const = 0;  // O(1); position in [0, size())
  virtual std::string text() const = 0;                         // for headers and records: "blocks of 64"
};

// 0, 1, 2, … in every epoch.
std::shared_ptr<const Order> in_order(int64_t size);

// A permutation of all samples, another one in each epoch.
std::shared_ptr<const Order> shuffled(int64_t size, uint64_t seed);

// For slow disks: blocks of neighbouring samples in random order, the samples of a block in random order. Throws
// ConfigError for blocks of less than one sample.
std::shared_ptr<const Order> shuffled_in_blocks(int64_t size, int64_t block, uint64_t seed);

// `draws` of `size` samples an epoch, each drawn from all of them, as RandomSampler(replacement=True) with num_samples.
// Throws ConfigError for no samples, more than 2^32 - 1, or no draws.
std::shared_ptr<const Order> with_replacement(int64_t size, int64_t draws, uint64_t seed);

// `draws` samples an epoch, drawn with replacement, sample i with the probability weights[i] ÷ all weights. Throws
// ConfigError for weights that are negative, not finite or all zero, and for no draws.
std::shared_ptr<const Order> weighted(const std::vector<double>& weights, int64_t draws, uint64_t seed);

}  // namespace lockstep::data
