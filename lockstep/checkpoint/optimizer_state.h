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
    size_t parameters = 0;  // their number in the group
  };
  std::vector<Group> groups;
  // The state of each parameter ("exp_avg", "step" …), group after group; empty before its first step.
  std::vector<Dict> parameters;
};

// Numbers the parameters from 0 through all groups, as PyTorch does, and leaves those without state out of "state".
// Throws BugError unless the groups' parameters add up to `parameters`.
Dict optimizer_to_dict(const OptimizerState& state);

// Reads such a dict. Throws DataError that names the path to what is wrong.
OptimizerState optimizer_from_dict(const ValueView& dict);

}  // namespace lockstep::checkpoint
