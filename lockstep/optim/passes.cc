#include "lockstep/optim/passes.h"

#include <algorithm>
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
  g = hn::Mul(g, constant(rule.multiplier));
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
  g = hn::Mul(g, constant(rule.multiplier));
  if (rule.weight_decay != 0) g = hn::MulAdd(p, constant(rule.weight_decay), g);
  s[0] = hn::MulAdd(g, g, s[0]);
  const V root = hn::Add(hn::Sqrt(s[0]), constant(rule.eps));
  p = hn::Add(p, hn::Div(hn::Mul(g, constant(-rule.lr)), root));
}

template <typename D, typename V>
void apply(D d, const AdamRule& rule, V& p, V g, V* s, bool amsgrad) {
  const Constants<D> constant{d};
  g = hn::Mul(g, constant(rule.multiplier));
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

template <size_t kStates, typename D, typename R>
void step_vector(D d, const R& rule, hn::TFromD<D>* p, const hn::TFromD<D>* g, hn::TFromD<D>* const* state, size_t at) {
  using V = hn::Vec<D>;
  V weight = hn::LoadU(d, p + at);
  V s[3] = {hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for (size_t k = 0; k < kStates; ++k) s[k] = hn::LoadU(d, state[k] + at);
  if constexpr (std::is_same_v<R, AdamRule>) {
    apply(d, rule, weight, hn::LoadU(d, g + at), s, kStates == 3);
  } else {
    apply(d, rule, weight, hn::LoadU(d, g + at), s);
  }
  for (size_t k = 0; k < kStates; ++k) hn::StoreU(s[k], d, state[k] + at);
  hn::StoreU(weight, d, p + at);
}

// The last elements go through whole vectors in a buffer: the same instructions as the others.
template <size_t kStates, typename T, typename R>
void step_all(const R rule, const Elements<T> e) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t at = 0;
  for (; at + lanes <= e.size; at += lanes) step_vector<kStates>(d, rule, e.parameter, e.gradient, e.state.data(), at);
  const size_t rest = e.size - at;
  if (rest == 0) return;
  T buffer[5][hn::MaxLanes(hn::ScalableTag<T>())] = {};
  std::copy_n(e.parameter + at, rest, buffer[0]);
  std::copy_n(e.gradient + at, rest, buffer[1]);
  for (size_t k = 0; k < kStates; ++k) std::copy_n(e.state[k] + at, rest, buffer[2 + k]);
  T* const state[3] = {buffer[2], buffer[3], buffer[4]};
  step_vector<kStates>(d, rule, buffer[0], buffer[1], state, 0);
  std::copy_n(buffer[0], rest, e.parameter + at);
  for (size_t k = 0; k < kStates; ++k) std::copy_n(buffer[2 + k], rest, e.state[k] + at);
}

template <typename T>
void dispatch(const Rule& rule, const Elements<T>& e) {
  if (const auto* sgd = std::get_if<SgdRule>(&rule)) {
    return sgd->momentum == 0 ? step_all<0>(*sgd, e) : step_all<1>(*sgd, e);
  }
  if (const auto* adagrad = std::get_if<AdagradRule>(&rule)) return step_all<1>(*adagrad, e);
  const AdamRule& adam = std::get<AdamRule>(rule);
  return e.state[2] == nullptr ? step_all<2>(adam, e) : step_all<3>(adam, e);
}

void pass_f32(const Rule& rule, const Elements<float>& elements) { dispatch(rule, elements); }
void pass_f64(const Rule& rule, const Elements<double>& elements) { dispatch(rule, elements); }

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {

HWY_EXPORT(pass_f32);
HWY_EXPORT(pass_f64);

void run_pass(const Rule& rule, const Elements<float>& elements) { HWY_DYNAMIC_DISPATCH(pass_f32)(rule, elements); }
void run_pass(const Rule& rule, const Elements<double>& elements) { HWY_DYNAMIC_DISPATCH(pass_f64)(rule, elements); }

}  // namespace lockstep::optim
#endif
