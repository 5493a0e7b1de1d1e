// The losses of a rank's lanes.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep::parallel {

// A lane's mean loss, one number without a graph, and its weight in the global batch's mean. A lane without samples has
// an undefined value.
struct LaneLoss {
  double weight = 0;
  at::Tensor value;
};

// Returns Σ weight · value, added in fp64 in the order of the fold's tree over the lanes. Reading a device's value
// waits for the device: it is called after the last lane. At least one lane.
double sum_of(const std::vector<LaneLoss>& losses);

}  // namespace lockstep::parallel
