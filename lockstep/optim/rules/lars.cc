#include "lockstep/optim/rules/lars.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lockstep/optim/kernels/square_sums.h"
#include "lockstep/optim/kernels/step.h"
#include "lockstep/optim/option_checks.h"
#include "lockstep/optim/rules/sgd.h"

namespace lockstep::optim {
namespace {

constexpr SlotSpec kSlots[] = {{.name = "momentum_buffer"}};

// The step on other devices than the CPU (device_step.h): SGD's, of gradients with their ratios. The norms stay on the
// device.
struct LarsStep : SgdRule {
  double trust_coefficient, decay, eps;
  bool operator==(const LarsStep&) const = default;
};

// A ratio is 1, without weight decay, where a norm is 0.
void step_tensors(const LarsStep& step, device::Tensors& p, const device::Tensors& g, device::States& s) {
  const at::Tensor weight = device::norms(p), gradient = device::norms(g);
  const at::Tensor trust = weight * step.trust_coefficient / (gradient + step.decay * weight + step.eps);
  const at::Tensor ratio = trust.masked_fill(weight.eq(0), 1).masked_fill(gradient.eq(0), 0);
  step_tensors(static_cast<const SgdRule&>(step), p, device::scaled(device::decayed(p, g, step.decay), ratio), s);
}

}  // namespace

void LarsOptions::check() const {
  check_not_negative(kName, "lr", lr);
  check_not_negative(kName, "momentum", momentum);
  check_not_negative(kName, "weight_decay", weight_decay);
  check_not_negative(kName, "trust_coefficient", trust_coefficient);
  check_not_negative(kName, "eps", eps);
  if (nesterov && momentum == 0) throw ConfigError(kName, ": nesterov needs a momentum above 0");
}

std::span<const SlotSpec> Lars::slots(const GroupOptions&) const { return kSlots; }

void Lars::step_one(const GroupOptions& options, const Step& step, Slots& slots) const {
  const LarsOptions& o = values_of(options);
  at::Tensor& buffer = slots[0];
  const bool first = !buffer.defined();
  const bool used = o.momentum != 0;
  if (used && first) buffer = at::zeros_like(step.parameter);
  const Operands operands = step.operands({used ? &buffer : nullptr});
  double trust = 1, weight_decay = o.weight_decay;
  if (o.adapt && operands.queue != nullptr) {
    const SgdRule rule{.multiplier = o.maximize ? -step.multiplier : step.multiplier,
                       .lr = o.lr,
                       .weight_decay = 0,  // it is a part of the gradient before
                       .momentum = o.momentum,
                       .undamped = 1,
                       .nesterov = o.nesterov,
                       .first = first};
    return operands.queue->add(LarsStep{rule, o.trust_coefficient, o.weight_decay, o.eps}, operands, step.extras);
  }
  if (o.adapt) {
    const SquareSums sums = square_sums(operands, step.multiplier, step.extras);
    const double weight = std::sqrt(sums.weight), gradient = std::sqrt(sums.other);
    const bool scaled = weight != 0 && gradient != 0;
    trust = scaled ? o.trust_coefficient * weight / (gradient + o.weight_decay * weight + o.eps) : 1;
    weight_decay = scaled ? o.weight_decay : 0;
  }
  // The ratio becomes part of the gradient's factors; the step is then SGD's.
  const SgdRule rule{.multiplier = trust * (o.maximize ? -step.multiplier : step.multiplier),
                     .lr = o.lr,
                     .weight_decay = trust * weight_decay,
                     .momentum = o.momentum,
                     .undamped = 1,
                     .nesterov = o.nesterov,
                     .first = first};
  step_parameter(rule, operands, {.clip = trust * step.extras.clip, .average_share = step.extras.average_share});
}

template class OptimizerOf<Lars, LarsOptions>;

}  // namespace lockstep::optim
