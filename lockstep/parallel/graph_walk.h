// Which parameters a loss depends on: a walk over its graph, as find_unused_parameters makes it.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep::parallel {

// By parameter, whether backward from `losses` will reach it. Parameters are leaves that require gradients.
std::vector<bool> reached_parameters(const std::vector<at::Tensor>& losses, const std::vector<at::Tensor>& parameters);

}  // namespace lockstep::parallel
