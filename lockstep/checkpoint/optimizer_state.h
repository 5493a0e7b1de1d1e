// An optimizer's state in the layout of PyTorch's Optimizer.state_dict():
//   {"state": {0: {"momentum_buffer": tensor, …}, …}, "param_groups": [{"lr": 0.1, …, "params": [0, 1, …]}]}
#pragma once

#include <string>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/checkpoint/formats/value_view.h"

namespace lockstep::checkpoint {

struct OptimizerState {
  struct Group {
    Dict options;           // "lr", "momentum" …, without "params"
    size_t parameters = 0;  // how many the group has
  };
  std::vector<Group> groups;
  // By parameter, those of the first group first: its state ("exp_avg", "step" …), empty before its first step.
  std::vector<Dict> parameters;
};

// Parameters are numbered from 0 through all groups, as PyTorch does; those without state are left out of "state".
// Throws BugError unless the groups' parameters add up to `parameters`.
Dict optimizer_to_dict(const OptimizerState& state);

// The other way round. Throws DataError with the path to what is not as it should be.
OptimizerState optimizer_from_dict(const ValueView& dict);

}  // namespace lockstep::checkpoint
