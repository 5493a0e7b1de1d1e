#include "lockstep/optim/layer_passes.h"

// As in passes.cc.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/optim/layer_passes.cc"
#include <hwy/foreach_target.h>

#include "lockstep/optim/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

constexpr size_t kAhead = 1024;  // elements: what only reads waits for memory, whose own guesses end with a page

// Σ x² in fp64, whatever T.
template <typename T>
class SquareSum {
 public:
  using D = hn::ScalableTag<T>;

  SquareSum() : low_(hn::Zero(F64())), high_(hn::Zero(F64())) {}
  void add(hn::Vec<D> x) {
    if constexpr (sizeof(T) == sizeof(double)) {
      low_ = hn::MulAdd(x, x, low_);
    } else {
      const hn::Half<D> half;
      const auto l = hn::PromoteTo(F64(), hn::LowerHalf(half, x)), h = hn::PromoteTo(F64(), hn::UpperHalf(half, x));
      low_ = hn::MulAdd(l, l, low_);
      high_ = hn::MulAdd(h, h, high_);
    }
  }
  double total() const { return hn::GetLane(hn::SumOfLanes(F64(), hn::Add(low_, high_))); }

 private:
  using F64 = hn::ScalableTag<double>;
  hn::Vec<F64> low_, high_;
};

template <typename D, typename V>
V lamb_update(D d, const LambRule& rule, V p, const V* s) {
  const Constants<D> constant{d};
  const V root = hn::Add(hn::Div(hn::Sqrt(s[1]), constant(rule.root_correction)), constant(rule.eps));
  const V update = hn::Div(hn::Mul(s[0], constant(1 / rule.correction)), root);
  return rule.decoupled_decay == 0 ? update : hn::MulAdd(p, constant(rule.decoupled_decay), update);
}

template <typename T>
SquareSums square_sums(double multiplier, double clip, const Elements<T>& e) {
  const hn::ScalableTag<T> d;
  SquareSum<T> weights, gradients;
  for_each_vector(e, [&](const Elements<T>& part, size_t at, size_t) {
    __builtin_prefetch(part.parameter + at + kAhead);
    __builtin_prefetch(part.gradient + at + kAhead);
    weights.add(hn::LoadU(d, part.parameter + at));
    gradients.add(taken(d, hn::LoadU(d, part.gradient + at), multiplier, clip));
  });
  return {weights.total(), gradients.total()};
}

template <typename T>
SquareSums lamb_moments(const LambRule rule, double clip, const Elements<T>& e) {
  const hn::ScalableTag<T> d;
  const Constants<decltype(d)> constant{d};
  SquareSum<T> weights, updates;
  for_each_vector(e, [&](const Elements<T>& part, size_t at, size_t real) {
    const auto p = hn::LoadU(d, part.parameter + at);
    auto g = taken(d, hn::LoadU(d, part.gradient + at), rule.multiplier, clip);
    if (rule.weight_decay != 0) g = hn::MulAdd(p, constant(rule.weight_decay), g);
    hn::Vec<decltype(d)> s[2] = {hn::LoadU(d, part.state[0] + at), hn::LoadU(d, part.state[1] + at)};
    s[0] = hn::MulAdd(constant(rule.new_share), g, hn::Mul(s[0], constant(rule.beta1)));
    s[1] = hn::MulAdd(hn::Mul(constant(1 - rule.beta2), g), g, hn::Mul(s[1], constant(rule.beta2)));
    for (size_t k = 0; k < 2; ++k) hn::StoreU(s[k], d, part.state[k] + at);
    weights.add(p);
    updates.add(hn::IfThenElseZero(hn::FirstN(d, real), lamb_update(d, rule, p, s)));  // 0 / 0 where eps is 0
  });
  return {weights.total(), updates.total()};
}

template <typename T>
void lamb_step(const LambRule rule, double rate, double share, const Elements<T>& e) {
  const hn::ScalableTag<T> d;
  const Constants<decltype(d)> constant{d};
  for_each_vector(e, [=](const Elements<T>& part, size_t at, size_t) {
    const auto p = hn::LoadU(d, part.parameter + at);
    const hn::Vec<decltype(d)> s[2] = {hn::LoadU(d, part.state[0] + at), hn::LoadU(d, part.state[1] + at)};
    const auto weight = hn::MulAdd(lamb_update(d, rule, p, s), constant(-rate), p);
    hn::StoreU(weight, d, part.parameter + at);
    if (part.average == nullptr) return;
    hn::StoreU(moved(d, hn::LoadU(d, part.average + at), weight, share), d, part.average + at);
  });
}

SquareSums sums_f32(double multiplier, double clip, const Elements<float>& e) {
  return square_sums(multiplier, clip, e);
}
SquareSums sums_f64(double multiplier, double clip, const Elements<double>& e) {
  return square_sums(multiplier, clip, e);
}
SquareSums moments_f32(const LambRule& rule, double clip, const Elements<float>& e) {
  return lamb_moments(rule, clip, e);
}
SquareSums moments_f64(const LambRule& rule, double clip, const Elements<double>& e) {
  return lamb_moments(rule, clip, e);
}
void step_f32(const LambRule& rule, double rate, double share, const Elements<float>& e) {
  lamb_step(rule, rate, share, e);
}
void step_f64(const LambRule& rule, double rate, double share, const Elements<double>& e) {
  lamb_step(rule, rate, share, e);
}

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {

HWY_EXPORT(sums_f32);
HWY_EXPORT(sums_f64);
HWY_EXPORT(moments_f32);
HWY_EXPORT(moments_f64);
HWY_EXPORT(step_f32);
HWY_EXPORT(step_f64);

SquareSums run_square_sums(double multiplier, double clip, const Elements<float>& elements) {
  return HWY_DYNAMIC_DISPATCH(sums_f32)(multiplier, clip, elements);
}
SquareSums run_square_sums(double multiplier, double clip, const Elements<double>& elements) {
  return HWY_DYNAMIC_DISPATCH(sums_f64)(multiplier, clip, elements);
}
SquareSums run_lamb_moments(const LambRule& rule, double clip, const Elements<float>& elements) {
  return HWY_DYNAMIC_DISPATCH(moments_f32)(rule, clip, elements);
}
SquareSums run_lamb_moments(const LambRule& rule, double clip, const Elements<double>& elements) {
  return HWY_DYNAMIC_DISPATCH(moments_f64)(rule, clip, elements);
}
void run_lamb_step(const LambRule& rule, double rate, double average_share, const Elements<float>& elements) {
  HWY_DYNAMIC_DISPATCH(step_f32)(rule, rate, average_share, elements);
}
void run_lamb_step(const LambRule& rule, double rate, double average_share, const Elements<double>& elements) {
  HWY_DYNAMIC_DISPATCH(step_f64)(rule, rate, average_share, elements);
}

}  // namespace lockstep::optim
#endif
