// The average of the weights, for a parameter that has no gradient in a step.
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::optim {

// Moves `average` towards the weights by `share` of the way, as a step does; both as in Operands.
void average_parameter(const at::Tensor& parameter, const at::Tensor& average, double share);

}  // namespace lockstep::optim
