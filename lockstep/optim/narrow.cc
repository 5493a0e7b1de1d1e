#include "lockstep/optim/narrow.h"

#include <algorithm>
#include <cstdint>

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/optim/narrow.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using V32 = hn::Vec<F32>;

struct Half {
  using Element = hwy::float16_t;
  using Tag = hn::Rebind<Element, F32>;
  static V32 load(const Element* p) { return hn::PromoteTo(F32(), hn::LoadU(Tag(), p)); }
  static void store(V32 v, Element* p) { hn::StoreU(hn::DemoteTo(Tag(), v), Tag(), p); }
};

// bf16 is the upper half of fp32. Rounded by integers, for Highway's own conversion cuts off.
struct Brain {
  using Element = uint16_t;
  using Tag = hn::Rebind<Element, F32>;
  static V32 load(const Element* p) {
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), hn::LoadU(Tag(), p))));
  }
  static void store(V32 v, Element* p) {
    const auto bits = hn::BitCast(U32(), v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(U32(), 1));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(U32(), 0x7fff)));
    const auto nan = hn::Or(bits, hn::Set(U32(), 0x400000));
    const auto upper = hn::ShiftRight<16>(hn::IfThenElse(hn::RebindMask(U32(), hn::IsNaN(v)), nan, rounded));
    hn::StoreU(hn::DemoteTo(Tag(), hn::BitCast(hn::RebindToSigned<F32>(), upper)), Tag(), p);
  }
};

struct Float {
  using Element = float;
  static V32 load(const Element* p) { return hn::LoadU(F32(), p); }
  static void store(V32 v, Element* p) { hn::StoreU(v, F32(), p); }
};

// The tail goes through a zero-padded copy.
template <typename From, typename To>
void convert(const void* from, size_t size, void* to) {
  const auto* in = static_cast<const typename From::Element*>(from);
  auto* out = static_cast<typename To::Element*>(to);
  const size_t lanes = hn::Lanes(F32());
  size_t at = 0;
  for (; at + lanes <= size; at += lanes) To::store(From::load(in + at), out + at);
  if (at == size) return;
  typename From::Element rest[hn::MaxLanes(F32())] = {};
  typename To::Element result[hn::MaxLanes(F32())];
  std::copy(in + at, in + size, rest);
  To::store(From::load(rest), result);
  std::copy_n(result, size - at, out + at);
}

void widen_half(const void* from, size_t size, void* to) { convert<Half, Float>(from, size, to); }
void widen_brain(const void* from, size_t size, void* to) { convert<Brain, Float>(from, size, to); }
void narrow_half(const void* from, size_t size, void* to) { convert<Float, Half>(from, size, to); }
void narrow_brain(const void* from, size_t size, void* to) { convert<Float, Brain>(from, size, to); }

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {

HWY_EXPORT(widen_half);
HWY_EXPORT(widen_brain);
HWY_EXPORT(narrow_half);
HWY_EXPORT(narrow_brain);

void widen(const at::Half* from, size_t size, float* to) { HWY_DYNAMIC_DISPATCH(widen_half)(from, size, to); }
void widen(const at::BFloat16* from, size_t size, float* to) { HWY_DYNAMIC_DISPATCH(widen_brain)(from, size, to); }
void narrow(const float* from, size_t size, at::Half* to) { HWY_DYNAMIC_DISPATCH(narrow_half)(from, size, to); }
void narrow(const float* from, size_t size, at::BFloat16* to) { HWY_DYNAMIC_DISPATCH(narrow_brain)(from, size, to); }

}  // namespace lockstep::optim
#endif
