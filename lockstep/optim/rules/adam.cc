#include "lockstep/optim/rules/adam.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lockstep/optim/kernels/step.h"
#include "lockstep/optim/option_checks.h"

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/optim/rules/adam.cc"
#include <hwy/foreach_target.h>

#include "lockstep/optim/rules/moments-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

struct VectorForm {
  static constexpr size_t kLeastStates = 2, kMostStates = 3;  // exp_avg, exp_avg_sq, with amsgrad max_exp_avg_sq

  template <size_t kStates, typename D, typename V>
  static void step(D d, const AdamRule& rule, V& p, V g, V* s) {
    constexpr bool kAmsgrad = kStates == 3;
    const Constants<D> constant{d};
    if (rule.weight_decay != 0) g = hn::MulAdd(p, constant(rule.weight_decay), g);
    if (rule.shrink != 1) p = hn::Mul(p, constant(rule.shrink));
    update_moments(d, rule.new_share, rule.beta2, g, s);
    if (kAmsgrad) s[2] = hn::Max(s[2], s[1]);
    const V root = hn::Div(hn::Sqrt(kAmsgrad ? s[2] : s[1]), constant(rule.root_correction));
    p = hn::Add(p, hn::Div(hn::Mul(constant(-rule.step_size), s[0]), hn::Add(root, constant(rule.eps))));
  }
};

void step(const AdamRule& rule, const AnyElements& elements, const Extras& extras) {
  step_by<VectorForm>(rule, elements, extras);
}

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {
namespace {

enum Slot : size_t { kStep, kAverage, kAverageSquare, kMaxAverageSquare };
constexpr SlotSpec kSlots[] = {{.name = "step", .kind = SlotKind::kCounter},
                               {.name = "exp_avg"},
                               {.name = "exp_avg_sq"},
                               {.name = "max_exp_avg_sq", .needed = false}};
constexpr SlotSpec kAmsgradSlots[] = {kSlots[0], kSlots[1], kSlots[2], {.name = "max_exp_avg_sq"}};

HWY_EXPORT(step);

}  // namespace

void step_elements(const AdamRule& rule, const AnyElements& elements, const Extras& extras) {
  HWY_DYNAMIC_DISPATCH(step)(rule, elements, extras);
}

void step_tensors(const AdamRule& rule, device::Tensors& p, const device::Tensors& gradients, device::States& s) {
  const device::Tensors g = device::decayed(p, gradients, rule.weight_decay);
  if (rule.shrink != 1) at::_foreach_mul_(p, rule.shrink);
  at::_foreach_lerp_(s[0], g, rule.new_share);
  at::_foreach_mul_(s[1], rule.beta2);
  at::_foreach_addcmul_(s[1], g, g, 1 - rule.beta2);
  const bool amsgrad = !s[2].empty();
  if (amsgrad) at::_foreach_maximum_(s[2], s[1]);
  const device::Tensors root = at::_foreach_sqrt(amsgrad ? s[2] : s[1]);
  at::_foreach_div_(root, rule.root_correction);
  at::_foreach_add_(root, rule.eps);
  at::_foreach_addcdiv_(p, s[0], root, -rule.step_size);
}

void step_guarded(const AdamRule& rule, device::Tensors& p, const device::Tensors& g, device::States& s,
                  const at::Tensor& overflow) {
  const at::Tensor count = at::full({}, rule.count, p.front().options().dtype(at::kFloat));
  const device::Tensors counts(p.size(), count);
  const bool amsgrad = !s[2].empty(), decoupled = rule.decoupled_decay != 0;
  const auto step = [&](const auto& fused, double decay) {
    fused(p, g, s[0], s[1], s[2], counts, rule.lr, rule.beta1, rule.beta2, decay, rule.eps, amsgrad, /*maximize=*/false,
          /*grad_scale=*/std::nullopt, device::maybe(overflow));
  };
  if (decoupled) return step([](auto&&... words) { at::_fused_adamw_(words...); }, rule.decoupled_decay);
  step([](auto&&... words) { at::_fused_adam_(words...); }, rule.weight_decay);
}

template <bool Decoupled>
void AdamOptionsOf<Decoupled>::check() const {
  check_moments(*this);
}
template struct AdamOptionsOf<false>;
template struct AdamOptionsOf<true>;

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
                      .eps = o.eps,
                      .lr = o.lr,
                      .beta1 = o.betas.first,
                      .decoupled_decay = Decoupled ? o.weight_decay : 0,
                      .count = count};
  const at::Tensor* largest = o.amsgrad ? &slots[kMaxAverageSquare] : nullptr;
  step_parameter(rule, step.operands({&slots[kAverage], &slots[kAverageSquare], largest}), step.extras);
}

template class OptimizerOf<Adam, AdamOptions>;
template class OptimizerOf<AdamW, AdamWOptions>;
template class AdamOf<false>;
template class AdamOf<true>;

}  // namespace lockstep::optim
#endif
