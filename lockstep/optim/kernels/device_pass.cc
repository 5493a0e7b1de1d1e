#include "lockstep/optim/kernels/device_pass.h"

#include <ATen/ATen.h>

#include <cmath>

namespace lockstep::optim {
namespace {

using at::Tensor;
using States = std::array<Tensor, 3>;

// In fp32 or wider; the tensor itself where it is that.
Tensor wide(const Tensor& tensor) { return tensor.element_size() < 4 ? tensor.to(at::kFloat) : tensor.detach(); }

// The gradient as the rule takes it: multiplied, and with the weight decay that is added to it.
template <typename R>
Tensor decayed(const R& rule, const Tensor& p, const Tensor& g) {
  return rule.weight_decay == 0 ? g : g.add(p, rule.weight_decay);
}

void apply(const SgdRule& rule, Tensor& p, const Tensor& multiplied, States& s) {
  Tensor g = decayed(rule, p, multiplied);
  if (rule.shrink != 1) p.mul_(rule.shrink);
  if (rule.momentum != 0) {
    if (rule.first) {
      s[0].copy_(g);
    } else {
      s[0].mul_(rule.momentum).add_(g, rule.undamped);
    }
    g = rule.nesterov ? g.add(s[0], rule.momentum) : s[0];
  }
  p.sub_(g, rule.lr);
}

void apply(const AdagradRule& rule, Tensor& p, const Tensor& multiplied, States& s) {
  const Tensor g = decayed(rule, p, multiplied);
  s[0].addcmul_(g, g);
  p.addcdiv_(g, s[0].sqrt().add_(rule.eps), -rule.lr);
}

void apply(const AdamRule& rule, Tensor& p, const Tensor& multiplied, States& s) {
  const Tensor g = decayed(rule, p, multiplied);
  if (rule.shrink != 1) p.mul_(rule.shrink);
  s[0].lerp_(g, rule.new_share);
  s[1].mul_(rule.beta2).addcmul_(g, g, 1 - rule.beta2);
  if (s[2].defined()) at::maximum_out(s[2], s[2], s[1]);
  const Tensor& second = s[2].defined() ? s[2] : s[1];
  p.addcdiv_(s[0], second.sqrt().div_(rule.root_correction).add_(rule.eps), -rule.step_size);
}

void apply(const RmspropRule& rule, Tensor& p, const Tensor& multiplied, States& s) {
  const Tensor g = decayed(rule, p, multiplied);
  s[0].mul_(rule.alpha).addcmul_(g, g, 1 - rule.alpha);
  if (rule.centered) s[1].lerp_(g, 1 - rule.alpha);
  const Tensor root = (rule.centered ? s[0].addcmul(s[1], s[1], -1) : s[0]).sqrt().add_(rule.eps);
  if (rule.momentum == 0) {
    p.addcdiv_(g, root, -rule.lr);
  } else {
    p.sub_(s[rule.centered ? 2 : 1].mul_(rule.momentum).addcdiv_(g, root), rule.lr);
  }
}

void apply(const NadamRule& rule, Tensor& p, const Tensor& multiplied, States& s) {
  const Tensor g = decayed(rule, p, multiplied);
  if (rule.shrink != 1) p.mul_(rule.shrink);
  s[0].lerp_(g, rule.new_share);
  s[1].mul_(rule.beta2).addcmul_(g, g, 1 - rule.beta2);
  const Tensor root = s[1].div(rule.square_correction).sqrt_().add_(rule.eps);
  p.addcdiv_(g, root, -rule.gradient_step).addcdiv_(s[0], root, -rule.average_step);
}

Tensor lamb_update(const LambRule& rule, const Tensor& p, const States& s) {
  const Tensor root = s[1].sqrt().div_(rule.root_correction).add_(rule.eps);
  return s[0].div(rule.correction).div_(root).add_(p, rule.decoupled_decay);
}

// The gradient as a rule takes it.
Tensor taken(const Tensor& gradient, double multiplier, const Extras& extras) {
  const Tensor g = wide(gradient).mul(multiplier);
  return std::isfinite(extras.clip) ? g.clamp_(-extras.clip, extras.clip) : g;
}

double square_sum(const Tensor& x) {
  const double norm = at::linalg_vector_norm(x, 2, std::nullopt, false, at::kDouble).item<double>();
  return norm * norm;
}

States wide_states(const Operands& operands) {
  States states;
  for (size_t k = 0; k < states.size(); ++k) {
    if (operands.state[k] != nullptr) states[k] = wide(*operands.state[k]);
  }
  return states;
}

void store(const Tensor& from, const Tensor& to) {
  if (!from.is_alias_of(to)) to.copy_(from);
}

void store_states(const States& states, const Operands& operands) {
  for (size_t k = 0; k < states.size(); ++k) {
    if (operands.state[k] != nullptr) store(states[k], *operands.state[k]);
  }
}

// The new weight, its rounded copy and its average.
void store_weight(const Tensor& p, const Operands& operands, const Extras& extras) {
  store(p, operands.parameter);
  if (operands.rounded != nullptr) operands.rounded->copy_(p);
  if (operands.average != nullptr) average_on_device(operands.parameter, *operands.average, extras.average_share);
}

}  // namespace

void step_on_device(const Rule& rule, const Operands& operands, const Extras& extras) {
  const at::NoGradGuard no_grad;
  Tensor p = wide(operands.parameter);
  States states = wide_states(operands);
  std::visit([&](const auto& each) { apply(each, p, taken(operands.gradient, each.multiplier, extras), states); },
             rule);
  store_states(states, operands);
  store_weight(p, operands, extras);
}

void average_on_device(const Tensor& parameter, const Tensor& average, double share) {
  const at::NoGradGuard no_grad;
  average.detach().lerp_(wide(parameter), share);
}

double gradient_square_sum_on_device(const Tensor& gradient, double multiplier, const Extras& extras) {
  const at::NoGradGuard no_grad;
  return square_sum(taken(gradient, multiplier, extras));
}

SquareSums square_sums_on_device(const Operands& operands, double multiplier, const Extras& extras) {
  const at::NoGradGuard no_grad;
  return {square_sum(operands.parameter), gradient_square_sum_on_device(operands.gradient, multiplier, extras)};
}

SquareSums lamb_moments_on_device(const LambRule& rule, const Operands& operands, const Extras& extras) {
  const at::NoGradGuard no_grad;
  const Tensor p = wide(operands.parameter), g = decayed(rule, p, taken(operands.gradient, rule.multiplier, extras));
  const States states = wide_states(operands);
  states[0].mul_(rule.beta1).add_(g, rule.new_share);
  states[1].mul_(rule.beta2).addcmul_(g, g, 1 - rule.beta2);
  store_states(states, operands);
  return {square_sum(p), square_sum(lamb_update(rule, p, states))};
}

void lamb_step_on_device(const LambRule& rule, double rate, const Operands& operands, const Extras& extras) {
  const at::NoGradGuard no_grad;
  const Tensor p = wide(operands.parameter);
  p.sub_(lamb_update(rule, p, wide_states(operands)), rate);
  store_weight(p, operands, extras);
}

}  // namespace lockstep::optim
