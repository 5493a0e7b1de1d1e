// The losses of a rank's lanes.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lockstep/base/late_number.h"

namespace lockstep::parallel {

// A lane's mean loss, one number without a graph, and its weight in the global batch's mean. A lane without samples has
// an undefined value.
struct LaneLoss {
  double weight = 0;
  at::Tensor value;
};

// Returns Σ weight · value, added in fp64 in the order of the fold's tree over the lanes. Values of a device set out
// for the host, and reading the sum waits for them: it is called after the last lane. At least one lane.
LateNumber sum_of(const std::vector<LaneLoss>& losses);

}  // namespace lockstep::parallel
