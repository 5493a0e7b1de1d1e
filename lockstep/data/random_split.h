// Parts of a data set, drawn at random by percentages.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::data {

// Parts [0, size) at random, by the seed alone: part i has floor(size × percents[i] ÷ 100) samples, and those that are
// left over when the percents add up to 100 go to the parts one by one, as torch.utils.data.random_split does. The
// lists ascend. Throws ConfigError for percents below 0 or above 100 in all.
std::vector<std::vector<int64_t>> random_split(int64_t size, const std::vector<double>& percents, uint64_t seed);

}  // namespace lockstep::data
