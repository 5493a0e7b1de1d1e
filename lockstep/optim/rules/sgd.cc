#include "lockstep/optim/rules/sgd.h"

#include <ATen/ATen.h>

#include <utility>

#include "lockstep/optim/kernels/kernels.h"

namespace lockstep::optim {
namespace {

constexpr SlotSpec kSlots[] = {{.name = "momentum_buffer"}};

}  // namespace

std::span<const SlotSpec> SGD::slots(const GroupOptions&) const { return kSlots; }

void SGD::step_one(const GroupOptions& options, const Step& step, Slots& slots) const {
  const SgdOptions& o = values_of(options);
  at::Tensor& buffer = slots[0];
  const bool first = !buffer.defined();
  const bool used = o.momentum != 0;
  if (used && first) buffer = at::empty_like(step.parameter);
  const SgdRule rule{.multiplier = o.maximize ? -step.multiplier : step.multiplier,
                     .lr = o.lr,
                     .weight_decay = o.weight_decay,
                     .momentum = o.momentum,
                     .undamped = 1 - o.dampening,
                     .nesterov = o.nesterov,
                     .first = first};
  step_parameter(rule, step.operands({used ? &buffer : nullptr}), step.extras);
}

}  // namespace lockstep::optim
