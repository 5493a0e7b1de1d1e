#include "lockstep/optim/rules/lamb.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lockstep/optim/kernels/blocks.h"
#include "lockstep/optim/kernels/device_step.h"
#include "lockstep/optim/memory_order.h"
#include "lockstep/optim/option_checks.h"

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/optim/rules/lamb.cc"
#include <hwy/foreach_target.h>

#include "lockstep/optim/kernels/square_sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

// The update of one vector: weight p and state s.
template <typename D, typename V>
V lamb_update(D d, const LambRule& rule, V p, const V* s) {
  const Constants<D> constant{d};
  const V root = hn::Add(hn::Div(hn::Sqrt(s[1]), constant(rule.root_correction)), constant(rule.eps));
  const V update = hn::Div(hn::Mul(s[0], constant(1 / rule.correction)), root);
  return rule.decoupled_decay == 0 ? update : hn::MulAdd(p, constant(rule.decoupled_decay), update);
}

template <typename W, typename G>
SquareSums lamb_moments(const LambRule rule, double clip, const Elements<W, G>& e) {
  const hn::ScalableTag<Computed<W>> d;
  const Constants<decltype(d)> constant{d};
  SquareSum<Computed<W>> weights, updates;
  for_each_vector(e, [&](const Elements<W, G>& part, size_t at, size_t real) {
    read_ahead(part.parameter + at);
    read_ahead(part.gradient + at);
    for (size_t k = 0; k < 2; ++k) write_ahead(part.state[k] + at);
    const auto p = load(d, part.parameter + at);
    auto g = clipped_gradient(d, load(d, part.gradient + at), rule.multiplier, clip);
    if (rule.weight_decay != 0) g = hn::MulAdd(p, constant(rule.weight_decay), g);
    hn::Vec<decltype(d)> s[2] = {load(d, part.state[0] + at), load(d, part.state[1] + at)};
    s[0] = hn::MulAdd(constant(rule.new_share), g, hn::Mul(s[0], constant(rule.beta1)));
    s[1] = hn::MulAdd(hn::Mul(constant(1 - rule.beta2), g), g, hn::Mul(s[1], constant(rule.beta2)));
    for (size_t k = 0; k < 2; ++k) store(d, s[k], part.state[k] + at);
    weights.add(p);
    updates.add(hn::IfThenElseZero(hn::FirstN(d, real), lamb_update(d, rule, p, s)));  // 0 / 0 where eps is 0
  });
  return {weights.total(), updates.total()};
}

template <typename W, typename G>
void lamb_step(const LambRule rule, double rate, double share, const Elements<W, G>& e) {
  const hn::ScalableTag<Computed<W>> d;
  const Constants<decltype(d)> constant{d};
  for_each_vector(e, [=](const Elements<W, G>& part, size_t at, size_t) {
    write_ahead(part.parameter + at);
    for (size_t k = 0; k < 2; ++k) read_ahead(part.state[k] + at);
    const auto p = load(d, part.parameter + at);
    const hn::Vec<decltype(d)> s[2] = {load(d, part.state[0] + at), load(d, part.state[1] + at)};
    store_weight(d, hn::MulAdd(lamb_update(d, rule, p, s), constant(-rate), p), share, part, at);
  });
}

SquareSums moments(const LambRule& rule, double clip, const AnyElements& elements) {
  return std::visit([&](const auto& e) { return lamb_moments(rule, clip, e); }, elements);
}

void step(const LambRule& rule, double rate, double share, const AnyElements& elements) {
  std::visit([&](const auto& e) { lamb_step(rule, rate, share, e); }, elements);
}

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {
namespace {

enum Slot : size_t { kStep, kAverage, kAverageSquare };
constexpr SlotSpec kSlots[] = {
    {.name = "step", .kind = SlotKind::kCounter}, {.name = "exp_avg"}, {.name = "exp_avg_sq"}};

HWY_EXPORT(moments);
HWY_EXPORT(step);

at::Tensor lamb_update(const LambRule& rule, const at::Tensor& p, const device::States& s) {
  const at::Tensor root = s[1].sqrt().div_(rule.root_correction).add_(rule.eps);
  return s[0].div(rule.correction).div_(root).add_(p, rule.decoupled_decay);
}

}  // namespace

SquareSums step_lamb_moments(const LambRule& rule, const Operands& operands, const Extras& extras) {
  if (!operands.parameter.is_cpu()) return step_lamb_moments_on_device(rule, operands, extras);
  return sum_over_blocks<SquareSums>(
      operands, [&](const AnyElements& block) { return HWY_DYNAMIC_DISPATCH(moments)(rule, extras.clip, block); });
}

void step_lamb(const LambRule& rule, double rate, const Operands& operands, const Extras& extras) {
  if (!operands.parameter.is_cpu()) return step_lamb_on_device(rule, rate, operands, extras);
  for_each_block(operands, [&](const AnyElements& block, size_t) {
    HWY_DYNAMIC_DISPATCH(step)(rule, rate, extras.average_share, block);
  });
}

SquareSums step_lamb_moments_on_device(const LambRule& rule, const Operands& operands, const Extras& extras) {
  const at::NoGradGuard no_grad;
  const at::Tensor p = device::wide(operands.parameter);
  const at::Tensor gradient = device::clipped_gradient(operands.gradient, rule.multiplier, extras);
  const at::Tensor g = device::decayed(p, gradient, rule.weight_decay);
  const device::States s = device::wide_states(operands);
  s[0].mul_(rule.beta1).add_(g, rule.new_share);
  s[1].mul_(rule.beta2).addcmul_(g, g, 1 - rule.beta2);
  device::store_states(s, operands);
  return {device::square_sum(p), device::square_sum(lamb_update(rule, p, s))};
}

void step_lamb_on_device(const LambRule& rule, double rate, const Operands& operands, const Extras& extras) {
  const at::NoGradGuard no_grad;
  const at::Tensor p = device::wide(operands.parameter);
  p.sub_(lamb_update(rule, p, device::wide_states(operands)), rate);
  device::store_weight(p, operands, extras);
}

void LambOptions::check() const {
  check_moments(*this);
  check_not_negative(kName, "max_grad_norm", max_grad_norm);
}

std::span<const SlotSpec> Lamb::slots(const GroupOptions&) const { return kSlots; }

void Lamb::prepare(const GroupOptions&, const at::Tensor& parameter, Slots& slots) const {
  if (slots[kStep].defined()) return;
  slots[kStep] = new_number();
  slots[kAverage] = at::zeros_like(parameter);
  slots[kAverageSquare] = at::zeros_like(parameter);
}

double Lamb::gradient_factor(const Update& update) const {
  const double most = values_of(param_groups_.front().options()).max_grad_norm;
  if (most == 0) return 1;
  double norm = update.grad_norm;
  if (std::isnan(norm) || std::isfinite(update.clip_value)) {
    double square_sum = 0;
    for (const auto& group : param_groups_) {
      for (const at::Tensor& parameter : group.params()) {
        if (!parameter.grad().defined()) continue;
        square_sum +=
            gradient_square_sum(gradient_for(name(), parameter), update.grad_multiplier, {.clip = update.clip_value});
      }
    }
    norm = std::sqrt(square_sum);
  }
  return norm > most ? most / norm : 1;
}

void Lamb::step_one(const GroupOptions& options, const Step& step, Slots& slots) const {
  const LambOptions& o = values_of(options);
  const double count = count_step(slots[kStep]);
  const auto correction = [&](double beta) { return o.bias_correction ? 1 - std::pow(beta, count) : 1; };
  const LambRule rule{.multiplier = o.maximize ? -step.multiplier : step.multiplier,
                      .weight_decay = o.adam_w_mode ? 0 : o.weight_decay,
                      .decoupled_decay = o.adam_w_mode ? o.weight_decay : 0,
                      .beta1 = o.betas.first,
                      .new_share = o.grad_averaging ? 1 - o.betas.first : 1,
                      .beta2 = o.betas.second,
                      .correction = correction(o.betas.first),
                      .root_correction = std::sqrt(correction(o.betas.second)),
                      .eps = o.eps};
  const Operands operands = step.operands({&slots[kAverage], &slots[kAverageSquare]});
  const SquareSums sums = step_lamb_moments(rule, operands, step.extras);
  const bool scaled = (o.weight_decay != 0 || o.use_nvlamb) && sums.weight != 0 && sums.other != 0;
  step_lamb(rule, scaled ? o.lr * std::sqrt(sums.weight / sums.other) : o.lr, operands, step.extras);
}

template class OptimizerOf<Lamb, LambOptions>;

}  // namespace lockstep::optim
#endif
