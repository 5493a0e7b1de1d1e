// Statistics of a tensor's elements.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lockstep::checkpoint {

// Of the elements that are finite; those that are not are counted. Of complex numbers they are the magnitudes', of
// booleans those of 0 and 1. The sums are of at least double precision.
struct Statistics {
  int64_t finite = 0, nan = 0, inf = 0;  // counts
  long double min = 0, max = 0;          // exact; these and the mean say something where `finite` is not 0
  double mean = 0;
  double deviation = 0;  // the sample's standard deviation, as torch.std() has it: NaN of fewer than two elements
};

Statistics statistics_of(const at::Tensor& tensor);

}  // namespace lockstep::checkpoint
