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

// Calls vector(e, at, n) for each vector of the elements, of which n are real. The last go through whole vectors in a
// buffer: the same instructions as the others.
template <typename T, typename Vector>
void for_each_vector(const Elements<T> e, const Vector vector) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t at = 0;
  for (; at + lanes <= e.size; at += lanes) vector(e, at, lanes);
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
         0, rest);
  for (size_t k = 0; k < written.size(); ++k) {
    if (written[k] != nullptr) std::copy_n(buffer[k], rest, written[k] + at);
  }
}

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
