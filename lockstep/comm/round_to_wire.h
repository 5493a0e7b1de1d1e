// Rounding to the dtype in which values travel.
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::comm {

// Rounds each value in place to nearest even in `wire`, kBFloat16 or kHalf. The tensor is fp32, dense and on any
// device, which nothing waits for.
void round_to_wire(at::ScalarType wire, const at::Tensor& values);

}  // namespace lockstep::comm
