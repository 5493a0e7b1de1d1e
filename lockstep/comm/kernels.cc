#include "lockstep/comm/kernels.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/comm/kernels.cc"
#include <hwy/foreach_target.h>

#include "lockstep/base/half_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::comm::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using namespace lockstep::HWY_NAMESPACE;

// fp64, beside fp32 and the 16-bit types of half_vectors-inl.h, which are loaded as vectors of fp32.
struct Double {
  using Element = double;
  using Vector = hn::ScalableTag<double>;
  static hn::Vec<Vector> load(const Element* p) { return hn::LoadU(Vector(), p); }
  static void store(hn::Vec<Vector> v, Element* p) { hn::StoreU(v, Vector(), p); }
};

// fp32 numbers that are rounded to a 16-bit type at each load and store.
template <typename Narrow>
struct Wire {
  using Element = float;
  static V32 load(const Element* p) { return Narrow::round(hn::LoadU(F32(), p)); }
  static void store(V32 v, Element* p) { hn::StoreU(Narrow::round(v), F32(), p); }
};
using WireHalf = Wire<Half>;
using WireBrain = Wire<Brain>;

struct Adds {
  template <typename V>
  V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};
struct Multiplies {
  template <typename V>
  V operator()(V a, V b) const {
    return hn::Mul(a, b);
  }
};
struct TakesMax {
  template <typename V>
  V operator()(V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Gt(a, b), is_nan(a)), a, b);
  }
};
struct TakesMin {
  template <typename V>
  V operator()(V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Lt(a, b), is_nan(a)), a, b);
  }
};
struct TakesFirst {
  template <typename V>
  V operator()(V a, V) const {
    return a;
  }
};

// Computes whole vectors first, then the tail on zero-padded copies with the same vector code.
template <typename Type, typename Op, typename Out = Type>
void each(const void* a, const void* b, void* out, int64_t count) {
  using Element = typename Type::Element;
  const Op op;
  const auto *x = static_cast<const Element*>(a), *y = static_cast<const Element*>(b);
  auto* z = static_cast<typename Out::Element*>(out);
  const auto step = static_cast<int64_t>(hn::Lanes(hn::DFromV<decltype(Type::load(x))>()));
  int64_t i = 0;
  for (; i + step <= count; i += step) Out::store(op(Type::load(x + i), Type::load(y + i)), z + i);
  if (i == count) return;
  std::array<Element, HWY_MAX_BYTES / sizeof(float)> left{}, right{};
  std::copy(x + i, x + count, left.begin());
  std::copy(y + i, y + count, right.begin());
  std::array<typename Out::Element, HWY_MAX_BYTES / sizeof(float)> result;
  Out::store(op(Type::load(left.data()), Type::load(right.data())), result.data());
  std::copy_n(result.begin(), count - i, z + i);
}

template <typename Type>
void combine_as(BinaryOp op, const void* a, const void* b, void* out, int64_t count) {
  switch (op) {
    case BinaryOp::kAdd:
      return each<Type, Adds>(a, b, out, count);
    case BinaryOp::kMultiply:
      return each<Type, Multiplies>(a, b, out, count);
    case BinaryOp::kMax:
      return each<Type, TakesMax>(a, b, out, count);
    case BinaryOp::kMin:
      return each<Type, TakesMin>(a, b, out, count);
  }
}

void Combine(Format format, BinaryOp op, const void* a, const void* b, void* out, int64_t count) {
  switch (format) {
    case Format::kFloat:
      return combine_as<Float>(op, a, b, out, count);
    case Format::kDouble:
      return combine_as<Double>(op, a, b, out, count);
    case Format::kHalf:
      return combine_as<Half>(op, a, b, out, count);
    case Format::kBrain:
      return combine_as<Brain>(op, a, b, out, count);
    case Format::kWireHalf:
      return combine_as<WireHalf>(op, a, b, out, count);
    case Format::kWireBrain:
      return combine_as<WireBrain>(op, a, b, out, count);
  }
}

void CopyWireHalf(const void* in, void* out, int64_t count) { each<WireHalf, TakesFirst>(in, in, out, count); }
void CopyWireBrain(const void* in, void* out, int64_t count) { each<WireBrain, TakesFirst>(in, in, out, count); }

void AddWidenedHalf(const void* a, const void* b, void* out, int64_t n) { each<Half, Adds, Float>(a, b, out, n); }
void AddWidenedBrain(const void* a, const void* b, void* out, int64_t n) { each<Brain, Adds, Float>(a, b, out, n); }
void WidenHalf(const void* in, void* out, int64_t count) { each<Half, TakesFirst, Float>(in, in, out, count); }
void WidenBrain(const void* in, void* out, int64_t count) { each<Brain, TakesFirst, Float>(in, in, out, count); }

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

double SquaresF32(const void* data, int64_t count) { return square_sum<Float>(data, count); }
double SquaresF16(const void* data, int64_t count) { return square_sum<Half>(data, count); }
double SquaresBf16(const void* data, int64_t count) { return square_sum<Brain>(data, count); }

}  // namespace
}  // namespace lockstep::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::comm {

HWY_EXPORT(Combine);
HWY_EXPORT(CopyWireHalf);
HWY_EXPORT(CopyWireBrain);
HWY_EXPORT(AddWidenedHalf);
HWY_EXPORT(AddWidenedBrain);
HWY_EXPORT(WidenHalf);
HWY_EXPORT(WidenBrain);
HWY_EXPORT(SquaresF32);
HWY_EXPORT(SquaresF16);
HWY_EXPORT(SquaresBf16);

void combine(Format format, BinaryOp op, const void* a, const void* b, void* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(Combine)(format, op, a, b, out, count);
}

void copy_rounded(Format format, const void* in, void* out, int64_t count) {
  if (format == Format::kWireHalf) return HWY_DYNAMIC_DISPATCH(CopyWireHalf)(in, out, count);
  if (format == Format::kWireBrain) return HWY_DYNAMIC_DISPATCH(CopyWireBrain)(in, out, count);
  constexpr std::array<size_t, 4> kBytes = {4, 8, 2, 2};
  std::memmove(out, in, static_cast<size_t>(count) * kBytes[static_cast<size_t>(format)]);
}

void add_widened(Format format, const void* a, const void* b, void* out, int64_t count) {
  if (format == Format::kHalf) return HWY_DYNAMIC_DISPATCH(AddWidenedHalf)(a, b, out, count);
  HWY_DYNAMIC_DISPATCH(AddWidenedBrain)(a, b, out, count);
}

void widen(Format format, const void* in, void* out, int64_t count) {
  if (format == Format::kHalf) return HWY_DYNAMIC_DISPATCH(WidenHalf)(in, out, count);
  HWY_DYNAMIC_DISPATCH(WidenBrain)(in, out, count);
}

double square_sum_f32(const void* data, int64_t count) { return HWY_DYNAMIC_DISPATCH(SquaresF32)(data, count); }
double square_sum_f16(const void* data, int64_t count) { return HWY_DYNAMIC_DISPATCH(SquaresF16)(data, count); }
double square_sum_bf16(const void* data, int64_t count) { return HWY_DYNAMIC_DISPATCH(SquaresBf16)(data, count); }

// A plain loop is fast enough, for training in fp64 is rare.
double square_sum_f64(const void* data, int64_t count) {
  const auto* x = static_cast<const double*>(data);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += x[i] * x[i];
  return sum;
}

}  // namespace lockstep::comm
#endif  // HWY_ONCE
