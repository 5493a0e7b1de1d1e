// Parts of a data set, drawn at random. hold_out() (subset.h) draws in the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/data/permutation.h"

namespace lockstep::data {

// floor(size × percent ÷ 100).
int64_t share_of(int64_t size, double percent);

// The order in which parts of a data set are drawn. Checkpoints record shares alone, so it stays what it is.
inline Permutation split_order(int64_t size, uint64_t seed) {
  return Permutation(static_cast<uint64_t>(size), seed, 0, Purpose::kSplit);
}

// Parts [0, size) at random, by the seed alone: part i has floor(size × percents[i] ÷ 100) samples, and those that are
// left over when the percents add up to 100 go to the parts one by one, as torch.utils.data.random_split does. The
// lists ascend. Throws ConfigError for percents below 0 or above 100 in all.
std::vector<std::vector<int64_t>> random_split(int64_t size, const std::vector<double>& percents, uint64_t seed);

// The same, of so many samples each. Throws ConfigError for a number below 0, and for more than `size` in all.
std::vector<std::vector<int64_t>> split_by_counts(int64_t size, const std::vector<int64_t>& counts, uint64_t seed);

}  // namespace lockstep::data
