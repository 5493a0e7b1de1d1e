// The fold's arithmetic on a device. Every node of the tree is one addition by libtorch's own kernels.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/comm/call.h"

namespace lockstep::comm {

// Reduces `rows`, [ranks, elements], over the ranks in the tree's order, to [elements]. fp16 and bf16 are added in fp32
// and rounded at each node. kMean divides at the end.
at::Tensor combine_rows(ReduceOp op, const at::Tensor& rows);

// A call's tensors as one flat tensor of the dtype in which they travel: their own memory where they lie in it one
// behind the other and travel as they are, as the gradients of a bucket do, else a copy.
class DeviceRow {
 public:
  DeviceRow(const std::vector<at::Tensor>& tensors, at::ScalarType wire);

  // The values, [elements], contiguous. The caller folds them in place.
  const at::Tensor& values() const { return values_; }
  // Leaves the values in the tensors.
  void finish() const;

 private:
  template <typename Visit>
  void visit_parts(Visit&& visit) const;

  std::vector<at::Tensor> copied_;  // views of the memory of tensors that `values_` is a copy of
  at::Tensor values_;
};

}  // namespace lockstep::comm
