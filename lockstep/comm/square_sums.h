// The square sums of a fold's tensors. They tell a training step whether its gradients are finite, and their norm.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep::comm {

// The number of square sums of a tensor that is reduced on this device: on the CPU one for each block of kBlockElements
// elements, which the rank that reduces the block computes; on another device one, which every rank computes.
int64_t square_sum_count(int64_t elements, at::Device device);

// Writes the tensors' square sums, in their order, to `sums`, fp64. The tensors are dense, floating-point and on one
// device; elsewhere than on the CPU nothing waits for that device unless `sums` is not on it.
void take_square_sums(const std::vector<at::Tensor>& tensors, const at::Tensor& sums);

// The same for tensors of any device, one sum for each, by libtorch's kernels.
void take_whole_square_sums(const std::vector<at::Tensor>& tensors, const at::Tensor& sums);

}  // namespace lockstep::comm
