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

}  // namespace

SquareSums step_lamb_moments(const LambRule& rule, const Operands& operands, const Extras& extras) {
  return sum_over_blocks<SquareSums>(
      operands, [&](const AnyElements& block) { return HWY_DYNAMIC_DISPATCH(moments)(rule, extras.clip, block); });
}

void step_lamb(const LambRule& rule, double rate, const Operands& operands, const Extras& extras) {
  for_each_block(operands, [&](const AnyElements& block, size_t) {
    HWY_DYNAMIC_DISPATCH(step)(rule, rate, extras.average_share, block);
  });
}

void step_tensors(const LambStep& step, device::Tensors& p, const device::Tensors& gradients, device::States& s) {
  const device::Tensors g = device::decayed(p, gradients, step.weight_decay);
  at::_foreach_mul_(s[0], step.beta1);
  at::_foreach_add_(s[0], g, step.new_share);
  at::_foreach_mul_(s[1], step.beta2);
  at::_foreach_addcmul_(s[1], g, g, 1 - step.beta2);
  const device::Tensors root = at::_foreach_sqrt(s[1]);
  at::_foreach_div_(root, step.root_correction);
  at::_foreach_add_(root, step.eps);
  device::Tensors update = at::_foreach_div(s[0], step.correction);
  at::_foreach_div_(update, root);
  if (step.decoupled_decay != 0) at::_foreach_add_(update, p, step.decoupled_decay);
  if (step.scaled) {
    const at::Tensor weight = device::norms(p), own = device::norms(update);
    update = device::scaled(update, (weight / own).masked_fill(weight.eq(0).logical_or(own.eq(0)), 1));
  }
  at::_foreach_sub_(p, update, step.lr);
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
    const Extras extras{.clip = update.clip_value};
    double square_sum = 0;
    device::Tensors elsewhere;  // on other devices than the CPU
    for (const auto& group : param_groups_) {
      for (const at::Tensor& parameter : group.params()) {
        if (!parameter.grad().defined()) continue;
        const at::Tensor gradient = gradient_for(name(), parameter);
        if (gradient.is_cpu()) {
          square_sum += gradient_square_sum(gradient, update.grad_multiplier, extras);
        } else {
          elsewhere.push_back(gradient);
        }
      }
    }
    norm = std::sqrt(square_sum + device::square_sum(elsewhere, update.grad_multiplier, extras));
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
  const bool by_norms = o.weight_decay != 0 || o.use_nvlamb;
  if (operands.queue != nullptr) return operands.queue->add(LambStep{rule, o.lr, by_norms}, operands, step.extras);
  const SquareSums sums = step_lamb_moments(rule, operands, step.extras);
  const bool scaled = by_norms && sums.weight != 0 && sums.other != 0;
  step_lamb(rule, scaled ? o.lr * std::sqrt(sums.weight / sums.other) : o.lr, operands, step.extras);
}

template class OptimizerOf<Lamb, LambOptions>;

}  // namespace lockstep::optim
#endif
