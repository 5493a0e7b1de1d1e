// Helpers for tests of optimizers: a few parameters, and steps with gradients that depend on the step's number alone.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "lockstep/optim/any_optimizer.h"

namespace lockstep::optim::testing {

using Tensors = std::vector<at::Tensor>;

// A convolution's weight, its bias and one number; odd sizes, so that vector code has tails.
inline Tensors weights(at::ScalarType dtype = at::kFloat) {
  at::manual_seed(1);
  Tensors parameters = {at::randn({7, 3, 5, 5}), at::randn({7}), at::randn({})};
  for (at::Tensor& p : parameters) p = p.to(dtype).requires_grad_();
  return parameters;
}

inline void set_gradients(const Tensors& parameters, int step, double factor = 1) {
  at::manual_seed(100 + static_cast<uint64_t>(step));
  for (const at::Tensor& p : parameters) p.mutable_grad() = (at::randn(p.sizes()) * factor).to(p.scalar_type());
}

inline void train(AnyOptimizer& optimizer, const Tensors& parameters, int first, int last) {
  for (int step = first; step < last; ++step) {
    set_gradients(parameters, step);
    optimizer.update({});
  }
}

// The largest difference of any two elements.
inline double difference(const Tensors& a, const Tensors& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, (a[i] - b[i]).abs().max().item().toDouble());
  return most;
}

}  // namespace lockstep::optim::testing
