// The square sums of a fold's tensors: one for each block of kBlockElements, by which a step sees whether its gradients
// are finite, and how large.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep::comm {

// Into `sums`, fp64 [blocks of all tensors]; the tensors are dense, floating-point, on the CPU.
void take_square_sums(const std::vector<at::Tensor>& tensors, const at::Tensor& sums);

}  // namespace lockstep::comm
