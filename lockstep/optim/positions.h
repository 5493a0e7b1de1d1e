// The parameter that an index in a saved state means. PyTorch pairs saved and present parameters by their order, group
// by group, whatever their indices are.
#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lockstep/optim/state.h"

namespace lockstep::optim {

// The position of a parameter among an optimizer's groups.
struct Position {
  size_t group;
  size_t index;   // in the group
  size_t number;  // through all groups
};
using PositionMap = std::unordered_map<int64_t, Position>;

// The positions by saved index. Throws ConfigError unless both have the same number of groups, of the same sizes.
PositionMap match_groups(std::string_view optimizer, const OptimizerState& state,
                         const std::vector<torch::optim::OptimizerParamGroup>& groups);

// Throws ConfigError for an index that is in no group.
Position find_position(std::string_view optimizer, const PositionMap& positions, int64_t index);

// names[number], or "parameter 3" without a name.
std::string parameter_name(std::span<const std::string> names, size_t number);

}  // namespace lockstep::optim
