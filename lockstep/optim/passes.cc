#include "lockstep/optim/passes.h"

#include <algorithm>
#include <limits>
#include <type_traits>

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/optim/passes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Constants of a rule as vectors of T.
template <typename D>
struct Constants {
  using V = hn::Vec<D>;
  D d;
  V operator()(double value) const { return hn::Set(d, static_cast<hn::TFromD<D>>(value)); }
};

// The rules: weight p, gradient g, state s of one vector of elements. MulAdd(a, b, c) is a · b + c, rounded once where
// the machine can.
template <typename D, typename V>
void apply(D d, const SgdRule& rule, V& p, V g, V* s) {
  const Constants<D> constant{d};
  if (rule.weight_decay != 0) g = hn::MulAdd(p, constant(rule.weight_decay), g);
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
void apply(D d, const AdamRule& rule, V& p, V g, V* s, bool amsgrad) {
  const Constants<D> constant{d};
  if (rule.weight_decay != 0) g = hn::MulAdd(p, constant(rule.weight_decay), g);
  if (rule.shrink != 1) p = hn::Mul(p, constant(rule.shrink));
  const V change = hn::Sub(g, s[0]);  // from the end that is nearer, as at::lerp
  s[0] = rule.new_share < 0.5 ? hn::MulAdd(constant(rule.new_share), change, s[0])
                              : hn::MulAdd(constant(rule.new_share - 1), change, g);
  s[1] = hn::MulAdd(hn::Mul(constant(1 - rule.beta2), g), g, hn::Mul(s[1], constant(rule.beta2)));
  if (amsgrad) s[2] = hn::Max(s[2], s[1]);
  const V root = hn::Div(hn::Sqrt(amsgrad ? s[2] : s[1]), constant(rule.root_correction));
  p = hn::Add(p, hn::Div(hn::Mul(constant(-rule.step_size), s[0]), hn::Add(root, constant(rule.eps))));
}

// The gradient as the rule takes it. Min and Max differ between machines in what they make of NaN.
template <typename D, typename V>
V clipped(D d, V g, double clip) {
  const Constants<D> constant{d};
  return hn::IfThenElse(hn::IsNaN(g), g, hn::Min(hn::Max(g, constant(-clip)), constant(clip)));
}

// From the end that is nearer, as at::lerp.
template <typename D, typename V>
V moved(D d, V from, V to, double share) {
  const Constants<D> constant{d};
  if (share == 1) return to;
  const V change = hn::Sub(to, from);
  return share < 0.5 ? hn::MulAdd(constant(share), change, from) : hn::MulAdd(constant(share - 1), change, to);
}

template <size_t kStates, typename D, typename R, typename T = hn::TFromD<D>>
void step_vector(D d, const R& rule, const Extras& extras, const Elements<T>& e, size_t at) {
  using V = hn::Vec<D>;
  V weight = hn::LoadU(d, e.parameter + at);
  V g = hn::Mul(hn::LoadU(d, e.gradient + at), Constants<D>{d}(rule.multiplier));
  if (extras.clip < std::numeric_limits<double>::infinity()) g = clipped(d, g, extras.clip);
  V s[3] = {hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for (size_t k = 0; k < kStates; ++k) s[k] = hn::LoadU(d, e.state[k] + at);
  if constexpr (std::is_same_v<R, AdamRule>) {
    apply(d, rule, weight, g, s, kStates == 3);
  } else {
    apply(d, rule, weight, g, s);
  }
  for (size_t k = 0; k < kStates; ++k) hn::StoreU(s[k], d, e.state[k] + at);
  hn::StoreU(weight, d, e.parameter + at);
  if (e.average == nullptr) return;
  hn::StoreU(moved(d, hn::LoadU(d, e.average + at), weight, extras.average_share), d, e.average + at);
}

// Calls vector(e, at) for each vector of the elements. The last elements go through whole vectors in a buffer: the same
// instructions as the others.
template <typename T, typename Vector>
void for_each_vector(const Elements<T> e, const Vector vector) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t at = 0;
  for (; at + lanes <= e.size; at += lanes) vector(e, at);
  const size_t rest = e.size - at;
  if (rest == 0) return;
  T buffer[6][hn::MaxLanes(hn::ScalableTag<T>())] = {};
  const std::array<T*, 5> written = {e.parameter, e.state[0], e.state[1], e.state[2], e.average};
  for (size_t k = 0; k < written.size(); ++k) {
    if (written[k] != nullptr) std::copy_n(written[k] + at, rest, buffer[k]);
  }
  if (e.gradient != nullptr) std::copy_n(e.gradient + at, rest, buffer[5]);
  vector(Elements<T>{.parameter = buffer[0],
                     .gradient = buffer[5],
                     .state = {buffer[1], buffer[2], buffer[3]},
                     .size = lanes,
                     .average = e.average == nullptr ? nullptr : buffer[4]},
         0);
  for (size_t k = 0; k < written.size(); ++k) {
    if (written[k] != nullptr) std::copy_n(buffer[k], rest, written[k] + at);
  }
}

template <size_t kStates, typename T, typename R>
void step_all(const R rule, const Extras extras, const Elements<T>& e) {
  const hn::ScalableTag<T> d;
  for_each_vector(e, [=](const Elements<T>& part, size_t at) { step_vector<kStates>(d, rule, extras, part, at); });
}

template <typename T>
void dispatch(const Rule& rule, const Extras& extras, const Elements<T>& e) {
  if (const auto* sgd = std::get_if<SgdRule>(&rule)) {
    return sgd->momentum == 0 ? step_all<0>(*sgd, extras, e) : step_all<1>(*sgd, extras, e);
  }
  if (const auto* adagrad = std::get_if<AdagradRule>(&rule)) return step_all<1>(*adagrad, extras, e);
  const AdamRule& adam = std::get<AdamRule>(rule);
  return e.state[2] == nullptr ? step_all<2>(adam, extras, e) : step_all<3>(adam, extras, e);
}

template <typename T>
void average_all(double share, const Elements<T>& e) {
  const hn::ScalableTag<T> d;
  for_each_vector(e, [=](const Elements<T>& part, size_t at) {
    const auto weight = hn::LoadU(d, part.parameter + at);
    hn::StoreU(moved(d, hn::LoadU(d, part.average + at), weight, share), d, part.average + at);
  });
}

void pass_f32(const Rule& rule, const Extras& extras, const Elements<float>& e) { dispatch(rule, extras, e); }
void pass_f64(const Rule& rule, const Extras& extras, const Elements<double>& e) { dispatch(rule, extras, e); }
void average_f32(double share, const Elements<float>& e) { average_all(share, e); }
void average_f64(double share, const Elements<double>& e) { average_all(share, e); }

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {

HWY_EXPORT(pass_f32);
HWY_EXPORT(pass_f64);
HWY_EXPORT(average_f32);
HWY_EXPORT(average_f64);

void run_pass(const Rule& rule, const Elements<float>& elements, const Extras& extras) {
  HWY_DYNAMIC_DISPATCH(pass_f32)(rule, extras, elements);
}
void run_pass(const Rule& rule, const Elements<double>& elements, const Extras& extras) {
  HWY_DYNAMIC_DISPATCH(pass_f64)(rule, extras, elements);
}
void run_average(double share, const Elements<float>& elements) { HWY_DYNAMIC_DISPATCH(average_f32)(share, elements); }
void run_average(double share, const Elements<double>& elements) { HWY_DYNAMIC_DISPATCH(average_f64)(share, elements); }

}  // namespace lockstep::optim
#endif
