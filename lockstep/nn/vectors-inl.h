// The vectors of elements that the kernels of this folder share: whole ones, and the rest of a row. Each *_kernels.cc
// includes this inside its foreach_target, so once for every instruction set.
#if defined(LOCKSTEP_NN_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_NN_VECTORS_INL_H_
#undef LOCKSTEP_NN_VECTORS_INL_H_
#else
#define LOCKSTEP_NN_VECTORS_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>

#include "lockstep/base/half_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::nn::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using namespace lockstep::HWY_NAMESPACE;
using V = V32;

constexpr size_t kMostLanes = HWY_MAX_BYTES / sizeof(float);

HWY_INLINE V zero() { return hn::Zero(F32()); }

// Elements [i, i + count) as a vector: a Whole one, or the Tail of a row, which goes through a padded copy.
struct Whole {
  template <typename E>
  static HWY_INLINE V load(const void* from, size_t i, size_t) {
    return E::load(static_cast<const typename E::Element*>(from) + i);
  }
  template <typename E>
  static HWY_INLINE void store(V v, void* to, size_t i, size_t) {
    E::store(v, static_cast<typename E::Element*>(to) + i);
  }
};
struct Tail {
  template <typename E>
  static V load(const void* from, size_t i, size_t count) {
    std::array<typename E::Element, kMostLanes> copy{};
    std::copy_n(static_cast<const typename E::Element*>(from) + i, count, copy.begin());
    return E::load(copy.data());
  }
  template <typename E>
  static void store(V v, void* to, size_t i, size_t count) {
    std::array<typename E::Element, kMostLanes> copy;
    E::store(v, copy.data());
    std::copy_n(copy.begin(), count, static_cast<typename E::Element*>(to) + i);
  }
};

}  // namespace
}  // namespace lockstep::nn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
