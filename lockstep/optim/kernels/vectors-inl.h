// The vectors that the optimizers' passes share. Included once for every instruction set.
#if defined(LOCKSTEP_OPTIM_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_OPTIM_VECTORS_INL_H
#undef LOCKSTEP_OPTIM_VECTORS_INL_H
#else
#define LOCKSTEP_OPTIM_VECTORS_INL_H
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "lockstep/base/half_vectors-inl.h"
#include "lockstep/optim/kernels/elements.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using namespace lockstep::HWY_NAMESPACE;

// The constants of a rule as vectors.
template <typename D>
struct Constants {
  using V = hn::Vec<D>;
  D d;
  V operator()(double value) const { return hn::Set(d, static_cast<hn::TFromD<D>>(value)); }
};

// The gradient times `multiplier`, clipped. Min and Max treat NaN differently on different machines.
template <typename D, typename V>
V clipped_gradient(D d, V g, double multiplier, double clip) {
  const Constants<D> constant{d};
  g = hn::Mul(g, constant(multiplier));
  if (!(clip < std::numeric_limits<double>::infinity())) return g;
  return hn::IfThenElse(is_nan(g), g, hn::Min(hn::Max(g, constant(-clip)), constant(clip)));
}

// The vector `share` of the way between the two, computed from the nearer end, as at::lerp does.
template <typename D, typename V>
V lerp(D d, V from, V to, double share) {
  const Constants<D> constant{d};
  if (share == 1) return to;
  const V change = hn::Sub(to, from);
  return share < 0.5 ? hn::MulAdd(constant(share), change, from) : hn::MulAdd(constant(share - 1), change, to);
}

// Loads a vector of numbers, and stores it. Numbers of 16 bits become fp32.
template <typename D>
hn::Vec<D> load(D d, const hn::TFromD<D>* from) {
  return hn::LoadU(d, from);
}
template <typename D>
void store(D d, hn::Vec<D> v, hn::TFromD<D>* to) {
  hn::StoreU(v, d, to);
}
inline V32 load(F32, const at::Half* from) { return Half::load(reinterpret_cast<const Half::Element*>(from)); }
inline void store(F32, V32 v, at::Half* to) { Half::store(v, reinterpret_cast<Half::Element*>(to)); }
inline V32 load(F32, const at::BFloat16* from) { return Brain::load(reinterpret_cast<const Brain::Element*>(from)); }
inline void store(F32, V32 v, at::BFloat16* to) { Brain::store(v, reinterpret_cast<Brain::Element*>(to)); }

// The distance, in elements, at which memory is prefetched. The CPU's own prefetching ends with a page, and skips
// memory that is only written.
constexpr size_t kAhead = 512;

template <typename T>
void read_ahead(const T* data) {
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(data) + kAhead * sizeof(T)));
}

template <typename T>
void write_ahead(T* data) {
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(data) + kAhead * sizeof(T)), 1);
}

// Stores the new weight of the vector of elements that begins at `at`, moves its average and rounds it into its copy.
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
  store(d, lerp(d, load(d, e.average + at), stored, share), e.average + at);
}

template <typename T>
void copy_some(const T* from, size_t size, T* to) {
  if (from != nullptr && to != nullptr) std::copy_n(from, size, to);
}

// Calls vector(e, at, n) for each vector of the elements, of which the first n are real. The last elements go through
// whole vectors in a buffer, and so through the same instructions as the others.
template <bool kWrites = true, typename W, typename G, typename Vector>
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
  copy_some(from(e.rounded), rest, gradients[1]);
  vector(last, 0, rest);
  if (!kWrites) return;
  copy_some(weights[0], rest, from(e.parameter));
  for (size_t k = 0; k < e.state.size(); ++k) copy_some(weights[k + 1], rest, from(e.state[k]));
  copy_some(average, rest, from(e.average));
  copy_some(gradients[1], rest, from(e.rounded));
}

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
