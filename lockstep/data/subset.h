// A data set made of some samples of another, and the training samples held out for validation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

// The samples that are held out, chosen at random by the seed alone. Both lists ascend.
struct HoldOut {
  std::vector<int64_t> train;
  std::vector<int64_t> validation;  // floor(size × percent / 100) of them
};

// Throws ConfigError unless 0 ≤ percent < 100 and, where percent > 0, at least one sample goes to validation.
HoldOut hold_out(int64_t size, double percent, uint64_t seed);

// The data set whose sample i is the base's sample indices[i]. Throws BugError for an index out of the base's range.
std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> base, std::vector<int64_t> indices,
                                      std::string description);

// Holds out `percent` of the training samples as the validation part, in place of the one that `splits` may have. With
// percent 0 the splits stay as they are.
Splits with_validation(const Splits& splits, double percent, uint64_t seed);

}  // namespace lockstep::data
