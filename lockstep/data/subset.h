// Some samples of a data set as a data set of their own, and the part of the training data held out for validation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

// Which samples are held out: chosen at random by the seed alone; both lists ascend.
struct HoldOut {
  std::vector<int64_t> train;
  std::vector<int64_t> validation;  // floor(size × percent / 100) of them
};

// Throws ConfigError unless 0 ≤ percent < 100 and, where percent > 0, at least one sample goes to validation.
HoldOut hold_out(int64_t size, double percent, uint64_t seed);

// Sample i is the base's sample indices[i]. Throws BugError for an index out of the base's range.
std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> base, std::vector<int64_t> indices,
                                      std::string description);

// `splits` with `percent` of its training samples held out as its validation part, in place of any of its own;
// unchanged where percent is 0.
Splits with_validation(const Splits& splits, double percent, uint64_t seed);

}  // namespace lockstep::data
