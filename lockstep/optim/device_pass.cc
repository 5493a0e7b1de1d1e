#include "lockstep/optim/device_pass.h"

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

void store(const Tensor& from, const Tensor& to) {
  if (!from.is_alias_of(to)) to.copy_(from);
}

}  // namespace

void step_on_device(const Rule& rule, const Operands& operands, const Extras& extras) {
  const at::NoGradGuard no_grad;
  Tensor p = wide(operands.parameter);
  States states;
  for (size_t k = 0; k < states.size(); ++k) {
    if (operands.state[k] != nullptr) states[k] = wide(*operands.state[k]);
  }
  std::visit(
      [&](const auto& each) {
        Tensor g = wide(operands.gradient).mul(each.multiplier);
        if (std::isfinite(extras.clip)) g.clamp_(-extras.clip, extras.clip);
        apply(each, p, g, states);
      },
      rule);
  store(p, operands.parameter);
  for (size_t k = 0; k < states.size(); ++k) {
    if (operands.state[k] != nullptr) store(states[k], *operands.state[k]);
  }
  if (operands.average != nullptr) average_on_device(operands.parameter, *operands.average, extras.average_share);
}

void average_on_device(const Tensor& parameter, const Tensor& average, double share) {
  const at::NoGradGuard no_grad;
  const Tensor sum = wide(average);
  sum.lerp_(wide(parameter), share);
  store(sum, average);
}

}  // namespace lockstep::optim
