// The optimizers' arithmetic on a device other than the CPU, by libtorch's own kernels for it. Values follow the CPU's
// pass but for rounding.
#pragma once

#include "lockstep/optim/kernels.h"

namespace lockstep::optim {

// One step of `rule` on tensors that lie on one device, of one dtype; fp16 and bf16 are computed in fp32.
void step_on_device(const Rule& rule, const Operands& operands, const Extras& extras = {});

// As average_parameter().
void average_on_device(const at::Tensor& parameter, const at::Tensor& average, double share);

}  // namespace lockstep::optim
