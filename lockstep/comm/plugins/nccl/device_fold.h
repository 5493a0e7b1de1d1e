// The fold's arithmetic on a device, by libtorch's own kernels: every node of the tree is one addition of theirs.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/comm/call.h"

namespace lockstep::comm {

// Of `rows`, [ranks, elements], the rows' combination in the tree's order, [elements]. fp16 and bf16 are added in fp32
// and rounded at each node; kMean divides at the end (integers: rounded towards zero).
at::Tensor combine_rows(ReduceOp op, const at::Tensor& rows);

// A call's tensors as one row of values in the type that they travel in, padded with zeros to `ranks` equal slices.
class DeviceRow {
 public:
  DeviceRow(const std::vector<at::Tensor>& tensors, at::ScalarType wire, int ranks);

  // [ranks, elements of a slice], contiguous; to be folded in place.
  const at::Tensor& slices() const { return slices_; }
  // Copies the values back into the tensors.
  void finish() const;

 private:
  std::vector<at::Tensor> flat_;  // views of the tensors' memory
  at::Tensor slices_;
};

// Of each tensor, by blocks (reduce.h) of its memory: the sums of squares, fp64.
at::Tensor square_sums_of(const std::vector<at::Tensor>& tensors);

}  // namespace lockstep::comm
