// A fold's tensors as one flat tensor, in the dtype in which they travel.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/comm/call.h"

namespace lockstep::comm {

// Convert between contiguous fp32 tensors and equally large ones of a 16-bit type, rounding to nearest even.
void to_wire(const at::Tensor& values, const at::Tensor& wire);
void from_wire(const at::Tensor& wire, const at::Tensor& values);

// The flat tensor is the tensors' own memory where they lie side by side and travel in their dtype; otherwise a copy.
class FlatFold {
 public:
  explicit FlatFold(const Call& call);

  // The values, [elements of all tensors], contiguous. The caller folds them in place.
  const at::Tensor& values() const { return values_; }
  // Copies the folded values back to the tensors, and computes the call's square sums.
  void finish() const;

 private:
  const Call& call_;
  at::Tensor values_;
  bool copied_;
};

}  // namespace lockstep::comm
