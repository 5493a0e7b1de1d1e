// Tensors in one piece of memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep::parallel {

struct PackedMemory {
  at::Tensor all;                 // uint8
  std::vector<at::Tensor> parts;  // by tensor: its place, with its sizes and dtype
};

// Copies dense tensors of one device into one piece of memory, in their order. Those that overlap in memory, as a
// buffer and a view of it do, overlap in the same way there and keep their strides; others become contiguous. Throws
// ConfigError for tensors of two dtypes whose elements overlap in part.
PackedMemory pack(const std::vector<at::Tensor>& tensors);

}  // namespace lockstep::parallel
