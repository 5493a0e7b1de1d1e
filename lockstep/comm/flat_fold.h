// A fold's tensors as one row of values, in the type that they travel in.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/comm/call.h"

namespace lockstep::comm {

// Between contiguous fp32 tensors and those of a 16-bit type, rounded to nearest even.
void to_wire(const at::Tensor& values, const at::Tensor& wire);
void from_wire(const at::Tensor& wire, const at::Tensor& values);

// Where the tensors lie side by side and travel as they are, the row is their own memory; otherwise a copy.
class FlatFold {
 public:
  explicit FlatFold(const Call& call);

  // [elements of all tensors], contiguous; to be folded in place.
  const at::Tensor& values() const { return values_; }
  // Copies the folded values back, and takes the square sums.
  void finish() const;

 private:
  const Call& call_;
  at::Tensor values_;
  bool copied_;
};

}  // namespace lockstep::comm
