#include "lockstep/optim/kernels/passes.h"

#include <type_traits>

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/optim/kernels/passes.cc"
#include <hwy/foreach_target.h>

#include "lockstep/optim/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

// The rules: weight p, gradient g, state s of one vector of elements. MulAdd(a, b, c) is a · b + c, rounded once where
// the machine can.
template <typename D, typename V>
void apply(D d, const SgdRule& rule, V& p, V g, V* s) {
  const Constants<D> constant{d};
  if (rule.weight_decay != 0) g = hn::MulAdd(p, constant(rule.weight_decay), g);
  if (rule.shrink != 1) p = hn::Mul(p, constant(rule.shrink));
  if (rule.momentum != 0) {
    const V momentum = constant(rule.momentum);
    s[0] = rule.first ? g : hn::MulAdd(g, constant(rule.undamped), hn::Mul(s[0], momentum));
    g = rule.nesterov ? hn::MulAdd(s[0], momentum, g) : s[0];
  }
  p = hn::MulAdd(g, constant(-rule.lr), p);
}

template <typename D, typename V>
void apply(D d, const AdagradRule& rule, V& p, V g, V* s) {
  const Constants<D> constant{d};
  if (rule.weight_decay != 0) g = hn::MulAdd(p, constant(rule.weight_decay), g);
  s[0] = hn::MulAdd(g, g, s[0]);
  const V root = hn::Add(hn::Sqrt(s[0]), constant(rule.eps));
  p = hn::Add(p, hn::Div(hn::Mul(g, constant(-rule.lr)), root));
}

template <typename D, typename V>
void apply(D d, const RmspropRule& rule, V& p, V g, V* s) {
  const Constants<D> constant{d};
  if (rule.weight_decay != 0) g = hn::MulAdd(p, constant(rule.weight_decay), g);
  s[0] = hn::MulAdd(hn::Mul(constant(1 - rule.alpha), g), g, hn::Mul(s[0], constant(rule.alpha)));
  V square = s[0];
  if (rule.centered) {
    s[1] = moved(d, s[1], g, 1 - rule.alpha);
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

// exp_avg and exp_avg_sq of Adam and NAdam.
template <typename D, typename V>
void average_moments(D d, double new_share, double beta2, V g, V* s) {
  const Constants<D> constant{d};
  s[0] = moved(d, s[0], g, new_share);
  s[1] = hn::MulAdd(hn::Mul(constant(1 - beta2), g), g, hn::Mul(s[1], constant(beta2)));
}

template <typename D, typename V>
void apply(D d, const AdamRule& rule, V& p, V g, V* s, bool amsgrad) {
  const Constants<D> constant{d};
  if (rule.weight_decay != 0) g = hn::MulAdd(p, constant(rule.weight_decay), g);
  if (rule.shrink != 1) p = hn::Mul(p, constant(rule.shrink));
  average_moments(d, rule.new_share, rule.beta2, g, s);
  if (amsgrad) s[2] = hn::Max(s[2], s[1]);
  const V root = hn::Div(hn::Sqrt(amsgrad ? s[2] : s[1]), constant(rule.root_correction));
  p = hn::Add(p, hn::Div(hn::Mul(constant(-rule.step_size), s[0]), hn::Add(root, constant(rule.eps))));
}

template <typename D, typename V>
void apply(D d, const NadamRule& rule, V& p, V g, V* s) {
  const Constants<D> constant{d};
  if (rule.weight_decay != 0) g = hn::MulAdd(p, constant(rule.weight_decay), g);
  if (rule.shrink != 1) p = hn::Mul(p, constant(rule.shrink));
  average_moments(d, rule.new_share, rule.beta2, g, s);
  const V root = hn::Add(hn::Sqrt(hn::Div(s[1], constant(rule.square_correction))), constant(rule.eps));
  p = hn::Add(p, hn::Div(hn::Mul(constant(-rule.gradient_step), g), root));
  p = hn::Add(p, hn::Div(hn::Mul(constant(-rule.average_step), s[0]), root));
}

template <size_t kStates, typename D, typename R, typename E>
void step_vector(D d, const R& rule, const Extras& extras, const E& e, size_t at) {
  using V = hn::Vec<D>;
  write_ahead(e.parameter + at);
  read_ahead(e.gradient + at);
  V weight = load(d, e.parameter + at);
  const V g = taken(d, load(d, e.gradient + at), rule.multiplier, extras.clip);
  V s[3] = {hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for (size_t k = 0; k < kStates; ++k) {
    write_ahead(e.state[k] + at);
    s[k] = load(d, e.state[k] + at);
  }
  if constexpr (std::is_same_v<R, AdamRule>) {
    apply(d, rule, weight, g, s, kStates == 3);
  } else {
    apply(d, rule, weight, g, s);
  }
  for (size_t k = 0; k < kStates; ++k) store(d, s[k], e.state[k] + at);
  store_weight(d, weight, extras.average_share, e, at);
}

template <size_t kStates, typename R, typename W, typename G>
void step_all(const R rule, const Extras extras, const Elements<W, G>& e) {
  const hn::ScalableTag<Computed<W>> d;
  for_each_vector(
      e, [=](const Elements<W, G>& part, size_t at, size_t) { step_vector<kStates>(d, rule, extras, part, at); });
}

template <typename E>
void dispatch(const Rule& rule, const Extras& extras, const E& e) {
  if (const auto* sgd = std::get_if<SgdRule>(&rule)) {
    return sgd->momentum == 0 ? step_all<0>(*sgd, extras, e) : step_all<1>(*sgd, extras, e);
  }
  if (const auto* adagrad = std::get_if<AdagradRule>(&rule)) return step_all<1>(*adagrad, extras, e);
  if (const auto* nadam = std::get_if<NadamRule>(&rule)) return step_all<2>(*nadam, extras, e);
  if (const auto* rmsprop = std::get_if<RmspropRule>(&rule)) {
    if (e.state[1] == nullptr) return step_all<1>(*rmsprop, extras, e);
    return e.state[2] == nullptr ? step_all<2>(*rmsprop, extras, e) : step_all<3>(*rmsprop, extras, e);
  }
  const AdamRule& adam = std::get<AdamRule>(rule);
  return e.state[2] == nullptr ? step_all<2>(adam, extras, e) : step_all<3>(adam, extras, e);
}

template <typename W, typename G>
void average_all(double share, const Elements<W, G>& e) {
  const hn::ScalableTag<Computed<W>> d;
  for_each_vector(e, [=](const Elements<W, G>& part, size_t at, size_t) {
    const auto weight = load(d, part.parameter + at);
    store(d, moved(d, load(d, part.average + at), weight, share), part.average + at);
  });
}

void pass(const Rule& rule, const AnyElements& elements, const Extras& extras) {
  std::visit([&](const auto& e) { dispatch(rule, extras, e); }, elements);
}

void average(double share, const AnyElements& elements) {
  std::visit([&](const auto& e) { average_all(share, e); }, elements);
}

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {

HWY_EXPORT(pass);
HWY_EXPORT(average);

void run_pass(const Rule& rule, const AnyElements& elements, const Extras& extras) {
  HWY_DYNAMIC_DISPATCH(pass)(rule, elements, extras);
}
void run_average(double share, const AnyElements& elements) { HWY_DYNAMIC_DISPATCH(average)(share, elements); }

}  // namespace lockstep::optim
#endif
