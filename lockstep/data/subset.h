// A data set made of some samples of another, and the training samples held out for validation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

// The samples that are held out. Both lists ascend.
struct HoldOut {
  std::vector<int64_t> train;
  std::vector<int64_t> validation;  // of a percent floor(size × percent / 100), if the classes can spare so many
  int64_t kept = 0;                 // samples that were drawn, and are trained on as the last ones of their classes
};

// What is asked to be held out.
struct HoldOutRequest {
  std::optional<double> percent = {};  // of the training samples; nothing: the data set's usual percent
  std::string files = {};  // "7.png,2[0-3].png": the samples whose files have such names, in place of a percent

  bool holds_some() const { return !files.empty() || percent.value_or(0) > 0; }
};

// Samples at random, chosen by the seed alone. Leaves every class (Dataset::class_of) a sample to train on. Throws
// ConfigError unless 0 ≤ percent < 100.
HoldOut hold_out(const Dataset& data, double percent, uint64_t seed);
// The samples of such files (HoldOutRequest). Throws ConfigError for a name that no file has, and where none is left.
HoldOut hold_out(const Dataset& data, const std::string& files);
// Either of them, or none where a request says neither.
HoldOut hold_out(const Dataset& data, const HoldOutRequest& request, uint64_t seed);

// The data set whose sample i is the base's sample indices[i]. Throws BugError for an index out of the base's range.
std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> base, std::vector<int64_t> indices,
                                      std::string description);

// The parts that a run trains on, validates on and ends on.
struct Completed {
  Splits splits;
  HoldOutRequest held_out = {.percent = 0};  // what was held out of the training samples for validation, as asked for
  bool usual = false;                        // the same is done where nobody says how much
};

// Makes the parts that `splits` lacks. Holds out training samples as the validation part, in place of one that there
// may be; where nothing is asked for and there is neither test nor validation part, the data set's usual percent, if
// classes can spare any. The test part is then, if there is none, the validation part, and else the training samples
// themselves. Parts that are not trained on are read for_evaluation(). Throws ConfigError for a percent of which no
// sample can be held out.
Completed complete(const Splits& splits, const HoldOutRequest& request, uint64_t seed);

// Returns the data set as evaluations read it: for_evaluation(), or itself if it is never augmented.
std::shared_ptr<const Dataset> as_evaluated(const std::shared_ptr<const Dataset>& data);

}  // namespace lockstep::data
