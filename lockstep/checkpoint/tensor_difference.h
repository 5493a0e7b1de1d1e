// How two tensors of equal shapes differ, element by element.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "lockstep/checkpoint/compare.h"

namespace lockstep::checkpoint {

struct TensorDifference {
  int64_t differing = 0;
  std::optional<LargestDifference> absolute, relative;  // of the elements that differ; as Difference has them
};

TensorDifference difference_of(const at::Tensor& a, const at::Tensor& b);

}  // namespace lockstep::checkpoint
