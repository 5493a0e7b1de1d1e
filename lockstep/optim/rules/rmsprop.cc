#include "lockstep/optim/rules/rmsprop.h"

#include <ATen/ATen.h>

#include <utility>

#include "lockstep/optim/kernels/kernels.h"

namespace lockstep::optim {
namespace {

enum Slot : size_t { kStep, kSquare, kMomentum, kGradient };
constexpr SlotSpec kSlots[] = {{.name = "step", .kind = SlotKind::kCounter},
                               {.name = "square_avg"},
                               {.name = "momentum_buffer", .needed = false},
                               {.name = "grad_avg", .needed = false}};

}  // namespace

std::span<const SlotSpec> RMSprop::slots(const GroupOptions&) const { return kSlots; }

void RMSprop::prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const {
  const RmspropOptions& o = values_of(options);
  if (!slots[kStep].defined()) slots[kStep] = new_number();
  for (const auto& [slot, used] : {std::pair(kSquare, true), {kMomentum, o.momentum > 0}, {kGradient, o.centered}}) {
    if (used && !slots[slot].defined()) slots[slot] = at::zeros_like(parameter);
  }
}

void RMSprop::step_one(const GroupOptions& options, const Step& step, Slots& slots) const {
  const RmspropOptions& o = values_of(options);
  count_step(slots[kStep]);
  const RmspropRule rule{.multiplier = o.maximize ? -step.multiplier : step.multiplier,
                         .lr = o.lr,
                         .weight_decay = o.weight_decay,
                         .alpha = o.alpha,
                         .eps = o.eps,
                         .momentum = o.momentum,
                         .centered = o.centered};
  std::array<const at::Tensor*, 3> state = {&slots[kSquare]};
  if (o.centered) state[1] = &slots[kGradient];
  if (o.momentum > 0) state[o.centered ? 2 : 1] = &slots[kMomentum];
  step_parameter(rule, step.operands(state), step.extras);
}

}  // namespace lockstep::optim
