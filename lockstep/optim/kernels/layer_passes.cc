#include "lockstep/optim/kernels/layer_passes.h"

// As in passes.cc.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/optim/kernels/layer_passes.cc"
#include <hwy/foreach_target.h>

#include "lockstep/optim/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

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

template <typename W, typename G>
SquareSums square_sums(double multiplier, double clip, const Elements<W, G>& e) {
  const hn::ScalableTag<Computed<W>> d;
  SquareSum<Computed<W>> weights, gradients;
  for_each_vector<false>(e, [&](const Elements<W, G>& part, size_t at, size_t) {
    read_ahead(part.parameter + at);
    read_ahead(part.gradient + at);
    weights.add(load(d, part.parameter + at));
    gradients.add(taken(d, load(d, part.gradient + at), multiplier, clip));
  });
  return {weights.total(), gradients.total()};
}

template <typename W, typename G>
double gradient_square_sum(double multiplier, double clip, const Elements<W, G>& e) {
  const hn::ScalableTag<Computed<W>> d;
  SquareSum<Computed<W>> gradients;
  for_each_vector<false>(e, [&](const Elements<W, G>& part, size_t at, size_t) {
    read_ahead(part.gradient + at);
    gradients.add(taken(d, load(d, part.gradient + at), multiplier, clip));
  });
  return gradients.total();
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
    auto g = taken(d, load(d, part.gradient + at), rule.multiplier, clip);
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

SquareSums sums(double multiplier, double clip, const AnyElements& elements) {
  return std::visit([&](const auto& e) { return square_sums(multiplier, clip, e); }, elements);
}

double gradient_sum(double multiplier, double clip, const AnyElements& elements) {
  return std::visit([&](const auto& e) { return gradient_square_sum(multiplier, clip, e); }, elements);
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

HWY_EXPORT(sums);
HWY_EXPORT(gradient_sum);
HWY_EXPORT(moments);
HWY_EXPORT(step);

SquareSums run_square_sums(double multiplier, double clip, const AnyElements& elements) {
  return HWY_DYNAMIC_DISPATCH(sums)(multiplier, clip, elements);
}
double run_gradient_square_sum(double multiplier, double clip, const AnyElements& elements) {
  return HWY_DYNAMIC_DISPATCH(gradient_sum)(multiplier, clip, elements);
}
SquareSums run_lamb_moments(const LambRule& rule, double clip, const AnyElements& elements) {
  return HWY_DYNAMIC_DISPATCH(moments)(rule, clip, elements);
}
void run_lamb_step(const LambRule& rule, double rate, double average_share, const AnyElements& elements) {
  HWY_DYNAMIC_DISPATCH(step)(rule, rate, average_share, elements);
}

}  // namespace lockstep::optim
#endif
