// Loads and stores of fp32 vectors from and to memory of fp32, fp16 or bf16. Stores round to nearest even. Highway
// compiles the files that include this header once for every instruction set, and this header with them.
#if defined(LOCKSTEP_BASE_HALF_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_BASE_HALF_VECTORS_INL_H
#undef LOCKSTEP_BASE_HALF_VECTORS_INL_H
#else
#define LOCKSTEP_BASE_HALF_VECTORS_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using V32 = hn::Vec<F32>;

// Not(Eq()), for Ne() is false for NaNs on some instruction sets.
template <typename V>
HWY_INLINE auto is_nan(V v) {
  return hn::Not(hn::Eq(v, v));
}

struct Float {
  using Element = float;
  static HWY_INLINE V32 load(const Element* p) { return hn::LoadU(F32(), p); }
  static HWY_INLINE void store(V32 v, Element* p) { hn::StoreU(v, F32(), p); }
};

#if HWY_ARCH_X86 && HWY_TARGET >= HWY_SSE4
// Conversions without instructions for fp16. Highway's own emulation truncates, and turns infinity and NaN into
// numbers.
struct HalfBits {
  using Tag = hn::Rebind<uint16_t, F32>;
  using I32 = hn::RebindToSigned<F32>;

  static HWY_INLINE V32 widen(hn::Vec<Tag> half) {
    const auto bits = hn::PromoteTo(U32(), half);
    const auto magnitude = hn::And(bits, hn::Set(U32(), 0x7fff));
    // A product rebiases the exponent, and normalizes subnormal numbers as well.
    const V32 moved = hn::Mul(hn::BitCast(F32(), hn::ShiftLeft<13>(magnitude)), hn::Set(F32(), 0x1p112F));
    const auto special = hn::Gt(hn::BitCast(I32(), magnitude), hn::Set(I32(), 0x7bff));
    const auto exponent = hn::IfThenElseZero(hn::RebindMask(U32(), special), hn::Set(U32(), 0x7f800000));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, magnitude));
    return hn::BitCast(F32(), hn::Or(sign, hn::Or(exponent, hn::BitCast(U32(), moved))));
  }

  static HWY_INLINE hn::Vec<Tag> narrow(V32 v) {
    const auto bits = hn::BitCast(U32(), v);
    const auto magnitude = hn::And(bits, hn::Set(U32(), 0x7fffffff));
    const auto above = [&](int32_t limit) {
      return hn::RebindMask(U32(), hn::Gt(hn::BitCast(I32(), magnitude), hn::Set(I32(), limit)));
    };
    // Below 2^-14 an addition does the rounding. From 2^16 on the result is infinity or a NaN.
    const V32 half = hn::Set(F32(), 0.5F);
    const auto small =
        hn::Sub(hn::BitCast(U32(), hn::Add(hn::BitCast(F32(), magnitude), half)), hn::BitCast(U32(), half));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(U32(), 1));
    const auto rebiased = hn::Sub(magnitude, hn::Set(U32(), 112U << 23));
    const auto normal = hn::ShiftRight<13>(hn::Add(rebiased, hn::Add(odd, hn::Set(U32(), 0xfff))));
    const auto special = hn::IfThenElse(above(0x7f800000), hn::Set(U32(), 0x7e00), hn::Set(U32(), 0x7c00));
    const auto number = hn::IfThenElse(above(0x387fffff), normal, small);
    const auto sign = hn::ShiftRight<16>(hn::Xor(bits, magnitude));
    const auto all = hn::Or(sign, hn::IfThenElse(above(0x477fffff), special, number));
    return hn::DemoteTo(Tag(), hn::BitCast(I32(), all));
  }
};

struct Half {
  using Element = hwy::float16_t;
  static HWY_INLINE V32 load(const Element* p) {
    return HalfBits::widen(hn::LoadU(HalfBits::Tag(), reinterpret_cast<const uint16_t*>(p)));
  }
  static HWY_INLINE void store(V32 v, Element* p) {
    hn::StoreU(HalfBits::narrow(v), HalfBits::Tag(), reinterpret_cast<uint16_t*>(p));
  }
  static HWY_INLINE V32 round(V32 v) { return HalfBits::widen(HalfBits::narrow(v)); }
};
#else
struct Half {
  using Element = hwy::float16_t;
  using Tag = hn::Rebind<Element, F32>;
  static HWY_INLINE V32 load(const Element* p) { return hn::PromoteTo(F32(), hn::LoadU(Tag(), p)); }
  static HWY_INLINE void store(V32 v, Element* p) { hn::StoreU(hn::DemoteTo(Tag(), v), Tag(), p); }
  static HWY_INLINE V32 round(V32 v) { return hn::PromoteTo(F32(), hn::DemoteTo(Tag(), v)); }
};
#endif

// bf16 is the upper half of fp32. Integer arithmetic does the rounding, because conversions differ between instruction
// sets and Highway's own truncates. A NaN stays a NaN (its quiet bit is set).
struct Brain {
  using Element = uint16_t;
  using Tag = hn::Rebind<Element, F32>;
  static HWY_INLINE V32 load(const Element* p) {
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), hn::LoadU(Tag(), p))));
  }
  static HWY_INLINE void store(V32 v, Element* p) {
    const auto upper = hn::ShiftRight<16>(bits(v));
    hn::StoreU(hn::DemoteTo(Tag(), hn::BitCast(hn::RebindToSigned<F32>(), upper)), Tag(), p);
  }
  static HWY_INLINE V32 round(V32 v) { return hn::BitCast(F32(), hn::And(bits(v), hn::Set(U32(), 0xffff0000))); }

 private:
  static HWY_INLINE hn::Vec<U32> bits(V32 v) {
    const auto bits = hn::BitCast(U32(), v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(U32(), 1));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(U32(), 0x7fff)));
    const auto nan = hn::Or(bits, hn::Set(U32(), 0x400000));
    return hn::IfThenElse(hn::RebindMask(U32(), is_nan(v)), nan, rounded);
  }
};

}  // namespace
}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
