// Inputs and expected values of the conformance checks.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "lockstep/comm/reduce.h"

namespace lockstep::comm::testing {

// The input of rank `rank`, the same wherever it is computed.
at::Tensor input_of(int rank, at::ScalarType dtype, at::IntArrayRef shape);
std::vector<at::Tensor> inputs(int size, at::ScalarType dtype, at::IntArrayRef shape);

// The reduction in the tree's order, each node rounded to the dtype.
at::Tensor expected(const std::vector<at::Tensor>& values, ReduceOp op);
// The fold of fp32 tensors whose nodes are rounded to `wire`.
at::Tensor expected_on_wire(const std::vector<at::Tensor>& values, at::ScalarType wire);

// A tensor's layout: at the start of an allocation, one element after it, or with gaps between elements.
enum class Layout { kAligned, kUnaligned, kStrided };
constexpr Layout kLayouts[] = {Layout::kAligned, Layout::kUnaligned, Layout::kStrided};
// A copy of the values in this layout.
at::Tensor laid_out(const at::Tensor& values, Layout layout);

}  // namespace lockstep::comm::testing
