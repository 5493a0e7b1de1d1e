// ReLU of a 2×2 max-pool, which is the max-pool of a ReLU: the maximum commutes with it, and there is a quarter of the
// elements left to go over.
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::nn {

// [N, C, H, W] -> [N, C, ⌊H/2⌋, ⌊W/2⌋] of the same dtype and memory format; windows of 2×2 side by side, an odd last
// row or column left out. Values and first derivatives are those of at::relu(at::max_pool2d(x, {2, 2})), bit for bit;
// where a window's maximum is not positive nothing flows back. NaN stays NaN.
// Channels_last fp32 and bf16 with many channels go through one pass of our own in each direction, several times as
// fast as libtorch's; a second derivative through that is a BugError.
at::Tensor max_pool_relu(const at::Tensor& x);

}  // namespace lockstep::nn
