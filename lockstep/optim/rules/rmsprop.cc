#include "lockstep/optim/rules/rmsprop.h"

#include <ATen/ATen.h>

#include <utility>

#include "lockstep/optim/kernels/step.h"
#include "lockstep/optim/option_checks.h"

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/optim/rules/rmsprop.cc"
#include <hwy/foreach_target.h>

#include "lockstep/optim/kernels/vector_step-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

struct VectorForm {
  // square_avg, then, if centered, grad_avg, then, with momentum, the buffer.
  static constexpr size_t kLeastStates = 1, kMostStates = 3;

  template <size_t kStates, typename D, typename V>
  static void step(D d, const RmspropRule& rule, V& p, V g, V* s) {
    const Constants<D> constant{d};
    if (rule.weight_decay != 0) g = hn::MulAdd(p, constant(rule.weight_decay), g);
    s[0] = hn::MulAdd(hn::Mul(constant(1 - rule.alpha), g), g, hn::Mul(s[0], constant(rule.alpha)));
    V square = s[0];
    if (rule.centered) {
      s[1] = lerp(d, s[1], g, 1 - rule.alpha);
      square = hn::NegMulAdd(s[1], s[1], square);
    }
    const V root = hn::Add(hn::Sqrt(square), constant(rule.eps));
    if (rule.momentum == 0) {
      p = hn::Add(p, hn::Div(hn::Mul(constant(-rule.lr), g), root));
      return;
    }
    V& buffer = s[rule.centered ? 2 : 1];
    buffer = hn::Add(hn::Mul(buffer, constant(rule.momentum)), hn::Div(g, root));
    p = hn::MulAdd(buffer, constant(-rule.lr), p);
  }
};

void step(const RmspropRule& rule, const AnyElements& elements, const Extras& extras) {
  step_by<VectorForm>(rule, elements, extras);
}

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {
namespace {

enum Slot : size_t { kStep, kSquare, kMomentum, kGradient };
constexpr SlotSpec kSlots[] = {{.name = "step", .kind = SlotKind::kCounter},
                               {.name = "square_avg"},
                               {.name = "momentum_buffer", .needed = false},
                               {.name = "grad_avg", .needed = false}};

HWY_EXPORT(step);

}  // namespace

void step_elements(const RmspropRule& rule, const AnyElements& elements, const Extras& extras) {
  HWY_DYNAMIC_DISPATCH(step)(rule, elements, extras);
}

void step_tensors(const RmspropRule& rule, device::Tensors& p, const device::Tensors& gradients, device::States& s) {
  const device::Tensors g = device::decayed(p, gradients, rule.weight_decay);
  at::_foreach_mul_(s[0], rule.alpha);
  at::_foreach_addcmul_(s[0], g, g, 1 - rule.alpha);
  if (rule.centered) at::_foreach_lerp_(s[1], g, 1 - rule.alpha);
  const device::Tensors root = at::_foreach_sqrt(rule.centered ? at::_foreach_addcmul(s[0], s[1], s[1], -1) : s[0]);
  at::_foreach_add_(root, rule.eps);
  if (rule.momentum == 0) {
    at::_foreach_addcdiv_(p, g, root, -rule.lr);
    return;
  }
  const device::Tensors& buffer = s[rule.centered ? 2 : 1];
  at::_foreach_mul_(buffer, rule.momentum);
  at::_foreach_addcdiv_(buffer, g, root);
  at::_foreach_sub_(p, buffer, rule.lr);
}

void RmspropOptions::check() const {
  check_not_negative(kName, "lr", lr);
  check_not_negative(kName, "alpha", alpha);
  check_not_negative(kName, "eps", eps);
  check_not_negative(kName, "weight_decay", weight_decay);
  check_not_negative(kName, "momentum", momentum);
}

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

template class OptimizerOf<RMSprop, RmspropOptions>;

}  // namespace lockstep::optim
#endif
