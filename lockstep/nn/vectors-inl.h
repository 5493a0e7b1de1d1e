// Vectors of fp32 from and to memory of fp32, bf16 and fp16. Included by each *_kernels.cc inside its foreach_target,
// so once for every instruction set.
#if defined(LOCKSTEP_NN_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_NN_VECTORS_INL_H_
#undef LOCKSTEP_NN_VECTORS_INL_H_
#else
#define LOCKSTEP_NN_VECTORS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace lockstep::nn::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using U16 = hn::Rebind<uint16_t, F32>;
using F16 = hn::Rebind<hwy::float16_t, F32>;
using V = hn::Vec<F32>;

constexpr size_t kMostLanes = HWY_MAX_BYTES / sizeof(float);

HWY_INLINE V zero() { return hn::Zero(F32()); }

struct Float {
  using Type = float;
  static HWY_INLINE V load(const Type* p) { return hn::LoadU(F32(), p); }
  static HWY_INLINE void store(V v, Type* p) { hn::StoreU(v, F32(), p); }
};

// bf16 is the upper half of fp32; rounded to nearest even, a NaN stays one (its quiet bit is set).
struct Brain {
  using Type = uint16_t;
  static HWY_INLINE V load(const Type* p) {
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), hn::LoadU(U16(), p))));
  }
  static HWY_INLINE void store(V v, Type* p) {
    const auto bits = hn::BitCast(U32(), v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(U32(), 1));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(U32(), 0x7fff)));
    const auto nan = hn::Or(bits, hn::Set(U32(), 0x400000));
    const auto upper = hn::ShiftRight<16>(hn::IfThenElse(hn::RebindMask(U32(), hn::IsNaN(v)), nan, rounded));
    hn::StoreU(hn::DemoteTo(U16(), hn::BitCast(hn::RebindToSigned<F32>(), upper)), U16(), p);
  }
};

struct Half {
  using Type = hwy::float16_t;
  static HWY_INLINE V load(const Type* p) { return hn::PromoteTo(F32(), hn::LoadU(F16(), p)); }
  static HWY_INLINE void store(V v, Type* p) { hn::StoreU(hn::DemoteTo(F16(), v), F16(), p); }
};

// Elements [i, i + count) as a vector; all of one unless they are a row's Tail, which goes by way of a padded copy.
struct Whole {
  template <typename E>
  static HWY_INLINE V load(const void* from, size_t i, size_t) {
    return E::load(static_cast<const typename E::Type*>(from) + i);
  }
  template <typename E>
  static HWY_INLINE void store(V v, void* to, size_t i, size_t) {
    E::store(v, static_cast<typename E::Type*>(to) + i);
  }
};
struct Tail {
  template <typename E>
  static V load(const void* from, size_t i, size_t count) {
    std::array<typename E::Type, kMostLanes> copy{};
    std::copy_n(static_cast<const typename E::Type*>(from) + i, count, copy.begin());
    return E::load(copy.data());
  }
  template <typename E>
  static void store(V v, void* to, size_t i, size_t count) {
    std::array<typename E::Type, kMostLanes> copy;
    E::store(v, copy.data());
    std::copy_n(copy.begin(), count, static_cast<typename E::Type*>(to) + i);
  }
};

}  // namespace
}  // namespace lockstep::nn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
