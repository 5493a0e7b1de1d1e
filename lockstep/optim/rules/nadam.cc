#include "lockstep/optim/rules/nadam.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lockstep/optim/kernels/step.h"
#include "lockstep/optim/option_checks.h"

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/optim/rules/nadam.cc"
#include <hwy/foreach_target.h>

#include "lockstep/optim/rules/moments-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

struct VectorForm {
  static constexpr size_t kLeastStates = 2, kMostStates = 2;  // exp_avg, exp_avg_sq

  template <size_t kStates, typename D, typename V>
  static void step(D d, const NadamRule& rule, V& p, V g, V* s) {
    const Constants<D> constant{d};
    if (rule.weight_decay != 0) g = hn::MulAdd(p, constant(rule.weight_decay), g);
    if (rule.shrink != 1) p = hn::Mul(p, constant(rule.shrink));
    update_moments(d, rule.new_share, rule.beta2, g, s);
    const V root = hn::Add(hn::Sqrt(hn::Div(s[1], constant(rule.square_correction))), constant(rule.eps));
    p = hn::Add(p, hn::Div(hn::Mul(constant(-rule.gradient_step), g), root));
    p = hn::Add(p, hn::Div(hn::Mul(constant(-rule.average_step), s[0]), root));
  }
};

void step(const NadamRule& rule, const AnyElements& elements, const Extras& extras) {
  step_by<VectorForm>(rule, elements, extras);
}

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {
namespace {

enum Slot : size_t { kStep, kProduct, kAverage, kAverageSquare };
constexpr SlotSpec kSlots[] = {{.name = "step", .kind = SlotKind::kCounter},
                               {.name = "mu_product", .kind = SlotKind::kNumber},
                               {.name = "exp_avg"},
                               {.name = "exp_avg_sq"}};

// The momentum of step number `step`.
double momentum(const NAdamOptions& o, double step) {
  return o.betas.first * (1 - 0.5 * std::pow(0.96, step * o.momentum_decay));
}

HWY_EXPORT(step);

}  // namespace

void step_elements(const NadamRule& rule, const AnyElements& elements, const Extras& extras) {
  HWY_DYNAMIC_DISPATCH(step)(rule, elements, extras);
}

void step_tensors(const NadamRule& rule, device::Tensors& p, const device::Tensors& gradients, device::States& s) {
  const device::Tensors g = device::decayed(p, gradients, rule.weight_decay);
  if (rule.shrink != 1) at::_foreach_mul_(p, rule.shrink);
  at::_foreach_lerp_(s[0], g, rule.new_share);
  at::_foreach_mul_(s[1], rule.beta2);
  at::_foreach_addcmul_(s[1], g, g, 1 - rule.beta2);
  const device::Tensors root = at::_foreach_div(s[1], rule.square_correction);
  at::_foreach_sqrt_(root);
  at::_foreach_add_(root, rule.eps);
  at::_foreach_addcdiv_(p, g, root, -rule.gradient_step);
  at::_foreach_addcdiv_(p, s[0], root, -rule.average_step);
}

void NAdamOptions::check() const {
  check_moments(*this);
  check_not_negative(kName, "momentum_decay", momentum_decay);
}

std::span<const SlotSpec> NAdam::slots(const GroupOptions&) const { return kSlots; }

void NAdam::prepare(const GroupOptions&, const at::Tensor& parameter, Slots& slots) const {
  if (slots[kStep].defined()) return;
  slots[kStep] = new_number();
  slots[kProduct] = new_number(1);
  slots[kAverage] = at::zeros_like(parameter);
  slots[kAverageSquare] = at::zeros_like(parameter);
}

void NAdam::step_one(const GroupOptions& options, const Step& step, Slots& slots) const {
  const NAdamOptions& o = values_of(options);
  const double count = count_step(slots[kStep]);
  const double mu = momentum(o, count), next = momentum(o, count + 1);
  const double product = *slots[kProduct].mutable_data_ptr<float>() *= static_cast<float>(mu);
  const bool decoupled = o.decoupled_weight_decay;
  const NadamRule rule{.multiplier = o.maximize ? -step.multiplier : step.multiplier,
                       .weight_decay = decoupled ? 0 : o.weight_decay,
                       .shrink = decoupled ? 1 - o.lr * o.weight_decay : 1,
                       .new_share = 1 - o.betas.first,
                       .beta2 = o.betas.second,
                       .square_correction = 1 - std::pow(o.betas.second, count),
                       .gradient_step = o.lr * (1 - mu) / (1 - product),
                       .average_step = o.lr * next / (1 - product * next),
                       .eps = o.eps};
  step_parameter(rule, step.operands({&slots[kAverage], &slots[kAverageSquare]}), step.extras);
}

template class OptimizerOf<NAdam, NAdamOptions>;

}  // namespace lockstep::optim
#endif
