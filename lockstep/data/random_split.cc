#include "lockstep/data/random_split.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::data {

int64_t share_of(int64_t size, double percent) {
  return static_cast<int64_t>(std::floor(static_cast<double>(size) * percent / 100));
}

std::vector<std::vector<int64_t>> random_split(int64_t size, const std::vector<double>& percents, uint64_t seed) {
  double all = 0;
  for (const double percent : percents) {
    if (!(percent >= 0)) throw ConfigError("random_split: ", percent, " percent; from 0 upwards are possible");
    all += percent;
  }
  constexpr double kRounding = 1e-6;  // 33.3 + 33.3 + 33.4
  if (all > 100 + kRounding) throw ConfigError("random_split: ", all, " percent in all; 100 are the most");
  std::vector<int64_t> counts;
  int64_t left = size;
  for (const double percent : percents) {
    counts.push_back(std::min(left, share_of(size, percent)));
    left -= counts.back();
  }
  for (size_t i = 0; all > 100 - kRounding && left > 0; i = (i + 1) % counts.size(), --left) ++counts[i];
  return split_by_counts(size, counts, seed);
}

std::vector<std::vector<int64_t>> split_by_counts(int64_t size, const std::vector<int64_t>& counts, uint64_t seed) {
  int64_t left = size;
  for (const int64_t count : counts) {
    if (count < 0 || count > left) {
      throw ConfigError("random_split: a part of ", count, " samples, where ", left, " of ", size, " are left");
    }
    left -= count;
  }
  const Permutation order = split_order(size, seed);
  std::vector<std::vector<int64_t>> parts;
  uint64_t position = 0;
  for (const int64_t count : counts) {
    auto& part = parts.emplace_back();
    for (int64_t i = 0; i < count; ++i) part.push_back(static_cast<int64_t>(order(position++)));
    std::sort(part.begin(), part.end());
  }
  return parts;
}

}  // namespace lockstep::data
