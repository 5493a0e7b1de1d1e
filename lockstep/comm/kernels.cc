#include "lockstep/comm/kernels.h"

#include <algorithm>
#include <array>
#include <cstddef>

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/comm/kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lockstep::comm::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using U16 = hn::Rebind<uint16_t, F32>;
using V32 = hn::Vec<F32>;

// How each element type is read as, and written from, vectors of fp32.
struct Float {
  using Element = float;
  static V32 load(const Element* p) { return hn::LoadU(F32(), p); }
  static void store(V32 v, Element* p) { hn::StoreU(v, F32(), p); }
};

struct Half {
  using Element = hwy::float16_t;
  using Tag = hn::Rebind<Element, F32>;
  static V32 load(const Element* p) { return hn::PromoteTo(F32(), hn::LoadU(Tag(), p)); }
  static void store(V32 v, Element* p) { hn::StoreU(hn::DemoteTo(Tag(), v), Tag(), p); }
};

// bf16 is the upper half of fp32. Rounding to nearest even by integers, for conversions differ between instruction
// sets; a NaN stays one (its quiet bit is set).
struct Brain {
  using Element = uint16_t;
  static V32 load(const Element* p) {
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), hn::LoadU(U16(), p))));
  }
  static void store(V32 v, Element* p) {
    const auto bits = hn::BitCast(U32(), v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(U32(), 1));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(U32(), 0x7fff)));
    const auto nan = hn::Or(bits, hn::Set(U32(), 0x400000));
    const auto is_nan = hn::RebindMask(U32(), hn::Ne(v, v));
    const auto upper = hn::ShiftRight<16>(hn::IfThenElse(is_nan, nan, rounded));
    hn::StoreU(hn::DemoteTo(U16(), hn::BitCast(hn::RebindToSigned<F32>(), upper)), U16(), p);
  }
};

// Whole vectors first; the tail on zero-padded copies, by the same vector code.
template <typename Type>
void add(const void* a, const void* b, void* out, int64_t count) {
  using Element = typename Type::Element;
  const auto *x = static_cast<const Element*>(a), *y = static_cast<const Element*>(b);
  auto* z = static_cast<Element*>(out);
  const auto step = static_cast<int64_t>(hn::Lanes(F32()));
  int64_t i = 0;
  for (; i + step <= count; i += step) Type::store(hn::Add(Type::load(x + i), Type::load(y + i)), z + i);
  if (i == count) return;
  std::array<Element, HWY_MAX_BYTES / sizeof(float)> left{}, right{};
  std::copy(x + i, x + count, left.begin());
  std::copy(y + i, y + count, right.begin());
  Type::store(hn::Add(Type::load(left.data()), Type::load(right.data())), left.data());
  std::copy_n(left.begin(), count - i, z + i);
}

template <typename Type>
double square_sum(const void* data, int64_t count) {
  using Element = typename Type::Element;
  const hn::ScalableTag<double> f64;
  const hn::Half<F32> half;
  const auto* x = static_cast<const Element*>(data);
  const auto step = static_cast<int64_t>(hn::Lanes(F32()));
  auto low = hn::Zero(f64), high = hn::Zero(f64);
  const auto accumulate = [&](V32 v) {
    const auto l = hn::PromoteTo(f64, hn::LowerHalf(half, v)), h = hn::PromoteTo(f64, hn::UpperHalf(half, v));
    low = hn::MulAdd(l, l, low);
    high = hn::MulAdd(h, h, high);
  };
  int64_t i = 0;
  for (; i + step <= count; i += step) accumulate(Type::load(x + i));
  if (i < count) {
    std::array<Element, HWY_MAX_BYTES / sizeof(float)> tail{};
    std::copy(x + i, x + count, tail.begin());
    accumulate(Type::load(tail.data()));
  }
  return hn::GetLane(hn::SumOfLanes(f64, hn::Add(low, high)));
}

void AddF32(const void* a, const void* b, void* out, int64_t count) { add<Float>(a, b, out, count); }
void AddF16(const void* a, const void* b, void* out, int64_t count) { add<Half>(a, b, out, count); }
void AddBf16(const void* a, const void* b, void* out, int64_t count) { add<Brain>(a, b, out, count); }
double SquaresF32(const void* data, int64_t count) { return square_sum<Float>(data, count); }
double SquaresF16(const void* data, int64_t count) { return square_sum<Half>(data, count); }
double SquaresBf16(const void* data, int64_t count) { return square_sum<Brain>(data, count); }

}  // namespace
}  // namespace lockstep::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::comm {

HWY_EXPORT(AddF32);
HWY_EXPORT(AddF16);
HWY_EXPORT(AddBf16);
HWY_EXPORT(SquaresF32);
HWY_EXPORT(SquaresF16);
HWY_EXPORT(SquaresBf16);

void add_f32(const void* a, const void* b, void* out, int64_t count) { HWY_DYNAMIC_DISPATCH(AddF32)(a, b, out, count); }
void add_f16(const void* a, const void* b, void* out, int64_t count) { HWY_DYNAMIC_DISPATCH(AddF16)(a, b, out, count); }
void add_bf16(const void* a, const void* b, void* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(AddBf16)(a, b, out, count);
}
double square_sum_f32(const void* data, int64_t count) { return HWY_DYNAMIC_DISPATCH(SquaresF32)(data, count); }
double square_sum_f16(const void* data, int64_t count) { return HWY_DYNAMIC_DISPATCH(SquaresF16)(data, count); }
double square_sum_bf16(const void* data, int64_t count) { return HWY_DYNAMIC_DISPATCH(SquaresBf16)(data, count); }

// Training in fp64 is rare: what the compiler makes of a plain loop is enough.
void add_f64(const void* a, const void* b, void* out, int64_t count) {
  const auto *x = static_cast<const double*>(a), *y = static_cast<const double*>(b);
  auto* z = static_cast<double*>(out);
  for (int64_t i = 0; i < count; ++i) z[i] = x[i] + y[i];
}

double square_sum_f64(const void* data, int64_t count) {
  const auto* x = static_cast<const double*>(data);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += x[i] * x[i];
  return sum;
}

}  // namespace lockstep::comm
#endif  // HWY_ONCE
