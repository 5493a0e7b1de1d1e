#include "lockstep/data/random_split.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/data/permutation.h"

namespace lockstep::data {

std::vector<std::vector<int64_t>> random_split(int64_t size, const std::vector<double>& percents, uint64_t seed) {
  double all = 0;
  for (const double percent : percents) {
    if (!(percent >= 0)) throw ConfigError("random_split: ", percent, " percent; from 0 upwards are possible");
    all += percent;
  }
  constexpr double kRounding = 1e-6;  // 33.3 + 33.3 + 33.4
  if (all > 100 + kRounding) throw ConfigError("random_split: ", all, " percent in all; 100 are the most");
  std::vector<int64_t> sizes;
  int64_t left = size;
  for (const double percent : percents) {
    sizes.push_back(std::min(left, static_cast<int64_t>(std::floor(static_cast<double>(size) * percent / 100))));
    left -= sizes.back();
  }
  for (size_t i = 0; all > 100 - kRounding && left > 0; i = (i + 1) % sizes.size(), --left) ++sizes[i];
  const Permutation order(static_cast<uint64_t>(size), seed, 0, Purpose::kSplit);
  std::vector<std::vector<int64_t>> parts;
  uint64_t position = 0;
  for (const int64_t count : sizes) {
    auto& part = parts.emplace_back();
    for (int64_t i = 0; i < count; ++i) part.push_back(static_cast<int64_t>(order(position++)));
    std::sort(part.begin(), part.end());
  }
  return parts;
}

}  // namespace lockstep::data
