// The fold's arithmetic on a device. Every node of the tree is one addition by libtorch's own kernels.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/comm/call.h"

namespace lockstep::comm {

// Reduces `rows`, [ranks, elements], over the ranks in the tree's order, to [elements]. fp16 and bf16 are added in fp32
// and rounded at each node. kMean divides at the end.
at::Tensor combine_rows(ReduceOp op, const at::Tensor& rows);

// A call's tensors as one flat tensor in the dtype in which they travel, padded with zeros to `ranks` equal slices.
class DeviceRow {
 public:
  DeviceRow(const std::vector<at::Tensor>& tensors, at::ScalarType wire, int ranks);

  // The values, [ranks, elements of a slice], contiguous. The caller folds them in place.
  const at::Tensor& slices() const { return slices_; }
  // Copies the values back into the tensors.
  void finish() const;

 private:
  std::vector<at::Tensor> flat_;  // views of the tensors' memory
  at::Tensor slices_;
};

// The square sum of each block (blocks.h) of each tensor's memory, fp64 [blocks of all tensors].
at::Tensor square_sums_of(const std::vector<at::Tensor>& tensors);

}  // namespace lockstep::comm
