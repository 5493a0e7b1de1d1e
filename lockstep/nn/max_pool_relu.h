// The ReLU of a 2×2 max-pool, which equals the max-pool of a ReLU and goes over a quarter of the elements.
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::nn {

// [N, C, H, W] -> [N, C, ⌊H/2⌋, ⌊W/2⌋] of the same dtype and memory format. The 2×2 windows lie side by side; an odd
// last row or column is left out. Values and first derivatives are those of at::relu(at::max_pool2d(x, {2, 2})), bit
// for bit; where a window's maximum is not positive, no gradient flows back. NaN stays NaN. Channels_last fp32 and bf16
// tensors with many channels go through one pass of our own in each direction, several times as fast as libtorch's. A
// backward that is to be differentiated itself (create_graph) is made of libtorch's operations.
at::Tensor max_pool_relu(const at::Tensor& x);

}  // namespace lockstep::nn
