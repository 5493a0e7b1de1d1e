// Prefixes that wrappers of a model put before its parameters' names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// A number among the tensors of PyTorch's AveragedModel.
constexpr const char* kAverageCount = "n_averaged";

// The wrappers' prefix that all of a file's names but kAverageCount have and none of a model's: "module."
// (DataParallel's, DistributedDataParallel's and AveragedModel's), "_orig_mod." (torch.compile's), or one in the other.
// Empty if there is none. An empty list of the model's names stands for a model that is not known.
std::string wrappers_prefix(std::vector<std::string> file, const std::vector<std::string>& model);

// The prefix that some of a file's names have before those of a model, so that all of the model's are there with it:
// "model." of a LightningModule that calls its network so. Empty if there is none.
std::string prefix_before(const std::vector<std::string>& model, const std::vector<std::string>& file);

// The name without the prefix, if it begins with it.
std::string without_prefix(const std::string& name, std::string_view prefix);

// The part of a state dict whose names begin with the prefix, without it; all of it for an empty prefix.
struct StrippedState {
  Dict state;
  std::vector<std::string> left_out = {};  // names that do not begin with it
};
// Throws ConfigError if no name begins with the prefix, or all go on with a point, which is the prefix's.
StrippedState without_prefix(const Dict& state, const std::string& prefix, const std::string& file);

// "the names without module., 2 others left out", for people; empty for an empty prefix.
std::string prefix_text(const std::string& prefix, size_t left_out = 0);

}  // namespace lockstep::checkpoint
