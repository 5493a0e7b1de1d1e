#include "lockstep/nn/pool_kernels.h"

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/nn/pool_kernels.cc"
#include <hwy/foreach_target.h>

#include "lockstep/base/half_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::nn::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using namespace lockstep::HWY_NAMESPACE;
using U16 = hn::Rebind<uint16_t, F32>;
using U8 = hn::Rebind<uint8_t, F32>;
using V = V32;

V load(const float* p) { return Float::load(p); }
V load(const uint16_t* p) { return Brain::load(p); }
void store(V v, float* p) { Float::store(v, p); }
// Stores without rounding, for only loaded values are stored.
void store(V v, uint16_t* p) {
  hn::StoreU(hn::DemoteTo(U16(), hn::BitCast(hn::RebindToSigned<F32>(), hn::ShiftRight<16>(hn::BitCast(U32(), v)))),
             U16(), p);
}

// Visits the channels of one pixel in vectors; the last one overlaps the one before where the channels don't fill it.
template <typename Step>
void for_channels(size_t channels, Step step) {
  const size_t lanes = hn::Lanes(F32());
  for (size_t c = 0; c + lanes < channels; c += lanes) step(c);
  step(channels - lanes);
}

// Takes `value` where it is greater, or NaN, as at::max_pool2d does.
void take_greater(V value, V number, V& greatest, V& origin) {
  const auto take = hn::Or(hn::Gt(value, greatest), hn::IsNaN(value));
  greatest = hn::IfThenElse(take, value, greatest);
  origin = hn::IfThenElse(take, number, origin);
}

template <typename T>
void pool(const PoolRow<T>& row) {
  const F32 d;
  const size_t channels = row.channels;
  for (size_t pixel = 0; pixel < row.pixels; ++pixel) {
    const size_t at = pixel * channels;
    for_channels(channels, [&](size_t c) {
      V greatest = load(row.top + 2 * at + c);
      V origin = hn::Zero(d);
      take_greater(load(row.top + 2 * at + channels + c), hn::Set(d, 1), greatest, origin);
      take_greater(load(row.bottom + 2 * at + c), hn::Set(d, 2), greatest, origin);
      take_greater(load(row.bottom + 2 * at + channels + c), hn::Set(d, 3), greatest, origin);
      const auto none = hn::Le(greatest, hn::Zero(d));
      store(hn::IfThenZeroElse(none, greatest), row.output + at + c);
      origin = hn::IfThenElse(none, hn::Set(d, kNone), origin);
      hn::StoreU(hn::DemoteTo(U8(), hn::ConvertTo(hn::RebindToSigned<F32>(), origin)), U8(), row.origin + at + c);
    });
  }
}

template <typename T>
void unpool(const PoolRow<T>& row) {
  const F32 d;
  const U32 du;
  const size_t channels = row.channels;
  for (size_t pixel = 0; pixel < row.pixels; ++pixel) {
    const size_t at = pixel * channels;
    T* const targets[] = {row.top + 2 * at, row.top + 2 * at + channels, row.bottom + 2 * at,
                          row.bottom + 2 * at + channels};
    for_channels(channels, [&](size_t c) {
      const V gradient = load(row.output + at + c);
      const auto origin = hn::PromoteTo(du, hn::LoadU(U8(), row.origin + at + c));
      for (uint32_t k = 0; k < 4; ++k) {
        store(hn::IfThenElseZero(hn::RebindMask(d, hn::Eq(origin, hn::Set(du, k))), gradient), targets[k] + c);
      }
    });
  }
}

void pool_f32(const PoolRow<float>& row) { pool(row); }
void pool_bf16(const PoolRow<uint16_t>& row) { pool(row); }
void unpool_f32(const PoolRow<float>& row) { unpool(row); }
void unpool_bf16(const PoolRow<uint16_t>& row) { unpool(row); }
size_t lanes() { return hn::Lanes(F32()); }

}  // namespace
}  // namespace lockstep::nn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::nn {

HWY_EXPORT(pool_f32);
HWY_EXPORT(pool_bf16);
HWY_EXPORT(unpool_f32);
HWY_EXPORT(unpool_bf16);
HWY_EXPORT(lanes);

size_t least_channels() { return HWY_DYNAMIC_DISPATCH(lanes)(); }
void pool_row(const PoolRow<float>& row) { HWY_DYNAMIC_DISPATCH(pool_f32)(row); }
void pool_row(const PoolRow<uint16_t>& row) { HWY_DYNAMIC_DISPATCH(pool_bf16)(row); }
void unpool_row(const PoolRow<float>& row) { HWY_DYNAMIC_DISPATCH(unpool_f32)(row); }
void unpool_row(const PoolRow<uint16_t>& row) { HWY_DYNAMIC_DISPATCH(unpool_bf16)(row); }

}  // namespace lockstep::nn
#endif
