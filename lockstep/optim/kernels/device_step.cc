#include "lockstep/optim/kernels/device_step.h"

#include <ATen/ATen.h>

#include <cmath>

namespace lockstep::optim::device {
namespace {

using at::Tensor;

void store(const Tensor& from, const Tensor& to) {
  if (!from.is_alias_of(to)) to.copy_(from);
}

}  // namespace

void step(const Operands& operands, double multiplier, const Extras& extras, const TensorForm& form) {
  const at::NoGradGuard no_grad;
  Tensor p = wide(operands.parameter);
  States states = wide_states(operands);
  form(p, clipped_gradient(operands.gradient, multiplier, extras), states);
  store_states(states, operands);
  store_weight(p, operands, extras);
}

void move_average(const Tensor& parameter, const Tensor& average, double share) {
  const at::NoGradGuard no_grad;
  average.detach().lerp_(wide(parameter), share);
}

Tensor wide(const Tensor& tensor) { return tensor.element_size() < 4 ? tensor.to(at::kFloat) : tensor.detach(); }

States wide_states(const Operands& operands) {
  States states;
  for (size_t k = 0; k < states.size(); ++k) {
    if (operands.state[k] != nullptr) states[k] = wide(*operands.state[k]);
  }
  return states;
}

Tensor clipped_gradient(const Tensor& gradient, double multiplier, const Extras& extras) {
  const Tensor g = wide(gradient).mul(multiplier);
  return std::isfinite(extras.clip) ? g.clamp_(-extras.clip, extras.clip) : g;
}

Tensor decayed(const Tensor& p, const Tensor& g, double weight_decay) {
  return weight_decay == 0 ? g : g.add(p, weight_decay);
}

void store_states(const States& states, const Operands& operands) {
  for (size_t k = 0; k < states.size(); ++k) {
    if (operands.state[k] != nullptr) store(states[k], *operands.state[k]);
  }
}

void store_weight(const Tensor& p, const Operands& operands, const Extras& extras) {
  store(p, operands.parameter);
  if (operands.rounded != nullptr) operands.rounded->copy_(p);
  if (operands.average != nullptr) move_average(operands.parameter, *operands.average, extras.average_share);
}

double square_sum(const Tensor& x) {
  const double norm = at::linalg_vector_norm(x, 2, std::nullopt, false, at::kDouble).item<double>();
  return norm * norm;
}

}  // namespace lockstep::optim::device
