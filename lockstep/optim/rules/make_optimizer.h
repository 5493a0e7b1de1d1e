// Optimizers by name, with options by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/optim/fused_optimizer.h"
#include "lockstep/optim/parameter_groups.h"

namespace lockstep::optim {

// "adagrad", "adam" …
std::vector<std::string> optimizer_names();

// make_optimizer("sgd", parameters, {{"lr", 0.1}, {"momentum", 0.9}}): what is not named has PyTorch's default. Throws
// ConfigError for a name or option that does not exist, with the nearest that does, and for a value out of range.
std::unique_ptr<FusedOptimizer> make_optimizer(std::string_view name, std::vector<at::Tensor> parameters,
                                               const NamedOptions& options = {});
std::unique_ptr<FusedOptimizer> make_optimizer(std::string_view name, const std::vector<ParameterGroup>& groups,
                                               const NamedOptions& options = {});

}  // namespace lockstep::optim
