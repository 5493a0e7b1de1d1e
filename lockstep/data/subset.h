// A data set made of some samples of another, and the training samples held out for validation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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

// The parts that a run trains on, validates on and ends on, and the percent that was held out for that.
struct Completed {
  Splits splits;
  std::optional<double> held_out;  // null: nothing was
};

// Makes the parts that `splits` lacks. Holds out `percent` of the training samples as the validation part, in place of
// one that there may be; where nothing is asked for and there is neither test nor validation part, the data set's usual
// percent, if that leaves every class a sample to train on. The test part is then, if there is none, the validation
// part, and else the training samples themselves. Parts that are not trained on are read for_evaluation(). Throws
// ConfigError for a percent that leaves a class without training samples.
Completed complete(const Splits& splits, std::optional<double> percent, uint64_t seed);

}  // namespace lockstep::data
