#include "lockstep/optim/rules/adam.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "lockstep/optim/kernels/kernels.h"

namespace lockstep::optim {
namespace {

enum Slot : size_t { kStep, kAverage, kAverageSquare, kMaxAverageSquare };
constexpr SlotSpec kSlots[] = {{.name = "step", .kind = SlotKind::kCounter},
                               {.name = "exp_avg"},
                               {.name = "exp_avg_sq"},
                               {.name = "max_exp_avg_sq", .needed = false}};
constexpr SlotSpec kAmsgradSlots[] = {kSlots[0], kSlots[1], kSlots[2], {.name = "max_exp_avg_sq"}};

}  // namespace

template <bool Decoupled>
std::span<const SlotSpec> AdamOf<Decoupled>::slots(const GroupOptions& options) const {
  return Base::values_of(options).amsgrad ? kAmsgradSlots : kSlots;
}

template <bool Decoupled>
void AdamOf<Decoupled>::prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const {
  if (!slots[kStep].defined()) {
    slots[kStep] = new_number();
    slots[kAverage] = at::zeros_like(parameter);
    slots[kAverageSquare] = at::zeros_like(parameter);
  }
  if (Base::values_of(options).amsgrad && !slots[kMaxAverageSquare].defined()) {
    slots[kMaxAverageSquare] = at::zeros_like(parameter);
  }
}

template <bool Decoupled>
void AdamOf<Decoupled>::step_one(const GroupOptions& options, const FusedOptimizer::Step& step, Slots& slots) const {
  const auto& o = Base::values_of(options);
  const double count = count_step(slots[kStep]);
  const AdamRule rule{.multiplier = o.maximize ? -step.multiplier : step.multiplier,
                      .weight_decay = Decoupled ? 0 : o.weight_decay,
                      .shrink = Decoupled ? 1 - o.lr * o.weight_decay : 1,
                      .new_share = 1 - o.betas.first,
                      .beta2 = o.betas.second,
                      .step_size = o.lr / (1 - std::pow(o.betas.first, count)),
                      .root_correction = std::sqrt(1 - std::pow(o.betas.second, count)),
                      .eps = o.eps};
  const at::Tensor* largest = o.amsgrad ? &slots[kMaxAverageSquare] : nullptr;
  step_parameter(rule, step.operands({&slots[kAverage], &slots[kAverageSquare], largest}), step.extras);
}

template class AdamOf<false>;
template class AdamOf<true>;

}  // namespace lockstep::optim
