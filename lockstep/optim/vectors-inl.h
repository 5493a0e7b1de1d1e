// What the vector code of this folder shares; included once for every instruction set.
#if defined(LOCKSTEP_OPTIM_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_OPTIM_VECTORS_INL_H
#undef LOCKSTEP_OPTIM_VECTORS_INL_H
#else
#define LOCKSTEP_OPTIM_VECTORS_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "lockstep/optim/passes.h"

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

// The multiplied gradient, clipped. Min and Max differ between machines in what they make of NaN.
template <typename D, typename V>
V taken(D d, V g, double multiplier, double clip) {
  const Constants<D> constant{d};
  g = hn::Mul(g, constant(multiplier));
  if (!(clip < std::numeric_limits<double>::infinity())) return g;
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

// A vector of numbers, and back: of 16 bits they are widened, and rounded to nearest even.
template <typename D>
hn::Vec<D> load(D d, const hn::TFromD<D>* from) {
  return hn::LoadU(d, from);
}

template <typename D>
void store(D d, hn::Vec<D> v, hn::TFromD<D>* to) {
  hn::StoreU(v, d, to);
}

template <typename D>
hn::Vec<D> load(D d, const at::Half* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<hwy::float16_t, D>(), reinterpret_cast<const hwy::float16_t*>(from)));
}

template <typename D>
void store(D, hn::Vec<D> v, at::Half* to) {
  const hn::Rebind<hwy::float16_t, D> half;
  hn::StoreU(hn::DemoteTo(half, v), half, reinterpret_cast<hwy::float16_t*>(to));
}

// bf16 is the upper half of fp32. Rounded by integers, for Highway's own conversion cuts off.
template <typename D>
hn::Vec<D> load(D d, const at::BFloat16* from) {
  const hn::RebindToUnsigned<D> u32;
  const auto upper = hn::LoadU(hn::Rebind<uint16_t, D>(), reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(u32, upper)));
}

template <typename D>
void store(D, hn::Vec<D> v, at::BFloat16* to) {
  const hn::RebindToUnsigned<D> u32;
  const hn::Rebind<uint16_t, D> u16;
  const auto bits = hn::BitCast(u32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(u32, 0x7fff)));
  const auto nan = hn::Or(bits, hn::Set(u32, 0x400000));
  const auto upper = hn::ShiftRight<16>(hn::IfThenElse(hn::RebindMask(u32, hn::IsNaN(v)), nan, rounded));
  hn::StoreU(hn::DemoteTo(u16, hn::BitCast(hn::RebindToSigned<D>(), upper)), u16, reinterpret_cast<uint16_t*>(to));
}

// What memory is asked for ahead of its use, in elements: its own guesses end with a page, and it makes none for what
// is only written.
constexpr size_t kAhead = 512;

template <typename T>
void read_ahead(const T* data) {
  __builtin_prefetch(data + kAhead);
}

template <typename T>
void write_ahead(T* data) {
  __builtin_prefetch(data + kAhead, 1);
}

// The new weight of elements `at` and on: stored, averaged as it is stored, and rounded into its copy.
template <typename D, typename E>
void store_weight(D d, hn::Vec<D> weight, double share, const E& e, size_t at) {
  store(d, weight, e.parameter + at);
  if (e.rounded != nullptr) {
    write_ahead(e.rounded + at);
    store(d, weight, e.rounded + at);
  }
  if (e.average == nullptr) return;
  read_ahead(e.average + at);
  const auto stored = load(d, e.parameter + at);
  store(d, moved(d, load(d, e.average + at), stored, share), e.average + at);
}

template <typename T>
void copy_some(const T* from, size_t size, T* to) {
  if (from != nullptr && to != nullptr) std::copy_n(from, size, to);
}

// Calls vector(e, at, n) for each vector of the elements, of which n are real. The last go through whole vectors in a
// buffer: the same instructions as the others.
template <typename W, typename G, typename Vector>
void for_each_vector(const Elements<W, G> e, const Vector vector) {
  const hn::ScalableTag<Computed<W>> d;
  constexpr size_t kMost = hn::MaxLanes(hn::ScalableTag<Computed<W>>());
  const size_t lanes = hn::Lanes(d);
  size_t at = 0;
  for (; at + lanes <= e.size; at += lanes) vector(e, at, lanes);
  const size_t rest = e.size - at;
  if (rest == 0) return;
  W weights[4][kMost] = {};
  G gradients[2][kMost] = {};
  Computed<W> average[kMost] = {};
  const auto buffer_of = [](const auto* data, auto* buffer) { return data == nullptr ? nullptr : buffer; };
  const Elements<W, G> last{.parameter = weights[0],
                            .gradient = gradients[0],
                            .state = {weights[1], weights[2], weights[3]},
                            .size = lanes,
                            .average = buffer_of(e.average, average),
                            .rounded = buffer_of(e.rounded, gradients[1])};
  const auto from = [at](auto* data) { return data == nullptr ? nullptr : data + at; };
  copy_some(from(e.parameter), rest, weights[0]);
  copy_some(from(e.gradient), rest, gradients[0]);
  for (size_t k = 0; k < e.state.size(); ++k) copy_some(from(e.state[k]), rest, weights[k + 1]);
  copy_some(from(e.average), rest, average);
  vector(last, 0, rest);
  copy_some(weights[0], rest, from(e.parameter));
  for (size_t k = 0; k < e.state.size(); ++k) copy_some(weights[k + 1], rest, from(e.state[k]));
  copy_some(average, rest, from(e.average));
  copy_some(gradients[1], rest, from(e.rounded));
}

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
