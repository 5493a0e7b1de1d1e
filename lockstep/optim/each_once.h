// The parameters of an optimizer's groups, each once.
#pragma once

#include <torch/optim/optimizer.h>

#include <vector>

namespace lockstep::optim {

// The groups without what comes again in one of them: a module that is registered under two names gives its parameters
// twice. Throws ConfigError for a parameter that is in two groups, and for a complex one.
std::vector<torch::optim::OptimizerParamGroup> each_once(const std::vector<torch::optim::OptimizerParamGroup>& groups);

}  // namespace lockstep::optim
