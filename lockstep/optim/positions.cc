#include "lockstep/optim/positions.h"

#include "lockstep/base/error.h"

namespace lockstep::optim {

PositionMap match_groups(std::string_view optimizer, const OptimizerState& state,
                         const std::vector<torch::optim::OptimizerParamGroup>& groups) {
  if (state.groups.size() != groups.size()) {
    throw ConfigError(optimizer, ": the saved state has ", state.groups.size(), " parameter groups, this optimizer ",
                      groups.size());
  }
  PositionMap positions;
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<int64_t>& saved = state.groups[g].parameters;
    if (saved.size() != groups[g].params().size()) {
      throw ConfigError(optimizer, ": group ", g, " of the saved state has ", saved.size(),
                        " parameters, this optimizer's ", groups[g].params().size());
    }
    for (size_t index = 0; index < saved.size(); ++index) {
      const Position position{.group = g, .index = index, .number = positions.size()};
      if (!positions.emplace(saved[index], position).second) {
        throw ConfigError(optimizer, ": parameter ", saved[index], " is in the saved groups twice");
      }
    }
  }
  return positions;
}

Position find_position(std::string_view optimizer, const PositionMap& positions, int64_t index) {
  const auto found = positions.find(index);
  if (found == positions.end()) {
    throw ConfigError(optimizer, ": the saved state is of parameter ", index, ", which is in none of its groups");
  }
  return found->second;
}

std::string parameter_name(std::span<const std::string> names, size_t number) {
  return number < names.size() ? names[number] : cat("parameter ", number);
}

}  // namespace lockstep::optim
