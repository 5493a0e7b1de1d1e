// The square sums of a fold's tensors, one for each block of kBlockElements elements. They tell a training step whether
// its gradients are finite, and their norm.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep::comm {

// Writes the square sum of every block to `sums`, fp64 [blocks of all tensors]. The tensors are dense, floating-point
// and on the CPU.
void take_square_sums(const std::vector<at::Tensor>& tensors, const at::Tensor& sums);

}  // namespace lockstep::comm
