// The optimizers' arithmetic on a device other than the CPU, by libtorch's own kernels for it. Values follow the CPU's
// pass but for rounding.
#pragma once

#include "lockstep/optim/kernels/kernels.h"
#include "lockstep/optim/kernels/layer_passes.h"

namespace lockstep::optim {

// As step_parameter(), on tensors that lie on one device.
void step_on_device(const Rule& rule, const Operands& operands, const Extras& extras = {});

// As average_parameter().
void average_on_device(const at::Tensor& parameter, const at::Tensor& average, double share);

// As square_sums(), step_lamb_moments() and step_lamb(). The sums wait for the device.
double gradient_square_sum_on_device(const at::Tensor& gradient, double multiplier, const Extras& extras);
SquareSums square_sums_on_device(const Operands& operands, double multiplier, const Extras& extras);
SquareSums lamb_moments_on_device(const LambRule& rule, const Operands& operands, const Extras& extras);
void lamb_step_on_device(const LambRule& rule, double rate, const Operands& operands, const Extras& extras);

}  // namespace lockstep::optim
