#include "lockstep/nn/row_kernels.h"

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/nn/row_kernels.cc"
#include <hwy/foreach_target.h>

#include "lockstep/nn/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::nn::HWY_NAMESPACE {
namespace {

using Rows = std::span<const uint16_t* const>;
using Scales = std::span<const float* const>;  // empty: all are 1

template <typename E, typename Part, bool kScaled>
void sum_part(Rows rows, Scales scales, size_t i, size_t count, uint16_t* out) {
  V sum = zero();
  for (size_t k = 0; k < rows.size(); ++k) {
    const V value = Part::template load<E>(rows[k], i, count);
    if constexpr (kScaled) {
      sum = hn::MulAdd(value, Part::template load<Float>(scales[k], i, count), sum);
    } else {
      sum = hn::Add(sum, value);
    }
  }
  Part::template store<E>(sum, out, i, count);
}

template <typename E, bool kScaled>
void sum(Rows rows, Scales scales, size_t count, uint16_t* out) {
  const size_t lanes = hn::Lanes(F32());
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) sum_part<E, Whole, kScaled>(rows, scales, i, lanes, out);
  if (i < count) sum_part<E, Tail, kScaled>(rows, scales, i, count - i, out);
}

void sum_any(Rows rows, size_t count, bool brain, uint16_t* out) {
  brain ? sum<Brain, false>(rows, {}, count, out) : sum<Half, false>(rows, {}, count, out);
}
void sum_scaled(Rows rows, Scales scales, size_t count, bool brain, uint16_t* out) {
  brain ? sum<Brain, true>(rows, scales, count, out) : sum<Half, true>(rows, scales, count, out);
}

}  // namespace
}  // namespace lockstep::nn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::nn {

HWY_EXPORT(sum_any);
HWY_EXPORT(sum_scaled);

void sum_rows(std::span<const uint16_t* const> rows, size_t count, bool brain, uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(sum_any)(rows, count, brain, out);
}
void sum_scaled_rows(std::span<const uint16_t* const> rows, std::span<const float* const> scales, size_t count,
                     bool brain, uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(sum_scaled)(rows, scales, count, brain, out);
}

}  // namespace lockstep::nn
#endif
