// Which weights are parts of weights that are divided among ranks (parallel/tensor): ranks with other parts share no
// gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep::parallel {

struct WeightPart {
  int number = 0, parts = 1;
};

// Notes a weight as a part, for as long as it lives.
void set_part(const at::Tensor& weight, const WeightPart& part);
// Returns {0, 1} for a weight that is whole.
WeightPart part_of(const at::Tensor& weight);
bool is_part(const at::Tensor& weight);
bool any_part(const std::vector<at::Tensor>& weights);

}  // namespace lockstep::parallel
