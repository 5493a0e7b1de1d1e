// Prefixes that wrappers of a model put before its parameters' names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// The wrappers' prefix that all of a file's names have and none of a model's: "module." (DataParallel's,
// DistributedDataParallel's and AveragedModel's), "_orig_mod." (torch.compile's), or one in the other. Empty if there
// is none. An empty list of the model's names stands for a model that is not known.
std::string wrappers_prefix(const std::vector<std::string>& file, const std::vector<std::string>& model);

// The name without the prefix, if it begins with it.
std::string without_prefix(const std::string& name, std::string_view prefix);

// A state dict with such names. Throws ConfigError if no name begins with the prefix, or two become one.
Dict without_prefix(const Dict& state, const std::string& prefix, const std::string& file);

// "the names without module.", for people; empty for an empty prefix.
std::string prefix_text(const std::string& prefix);

}  // namespace lockstep::checkpoint
