// The state of libtorch's own optimizers in PyTorch's form (state.h): torch::optim's SGD, Adam, AdamW, RMSprop and
// Adagrad.
#pragma once

#include <torch/optim/optimizer.h>

#include <span>
#include <string>
#include <string_view>

#include "lockstep/optim/state.h"

namespace lockstep::optim {

// PyTorch's name of an optimizer, "sgd" …; empty for one that is none of these.
std::string_view libtorch_name(const torch::optim::Optimizer& optimizer);

// The state_dict() of PyTorch's optimizer of this name. The tensors are the optimizer's own, and the next step changes
// them. Throws ConfigError for an optimizer that is none of these.
OptimizerState libtorch_state(torch::optim::Optimizer& optimizer);

// Takes over options and copies of the state. `names` are the parameters' names for messages (may be empty). Throws
// ConfigError, and changes nothing, for what does not fit: groups, shapes, missing parts, options that libtorch's
// optimizer lacks.
void load_libtorch_state(torch::optim::Optimizer& optimizer, const OptimizerState& state,
                         std::span<const std::string> names = {});

}  // namespace lockstep::optim
