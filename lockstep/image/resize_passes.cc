#include "lockstep/image/resize_passes.h"

#include <algorithm>
#include <cstring>

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/image/resize_passes.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lockstep::image::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kHalf = 1 << (kWeightBits - 1);

const int16_t* weights_of(const ResizePass& pass, int x) {
  return pass.axis.weights.data() + static_cast<size_t>(pass.begin + x) * static_cast<size_t>(pass.axis.taps);
}
int first_of(const ResizePass& pass, int x) {
  return pass.axis.first[static_cast<size_t>(pass.begin + x)] + pass.origin;
}
int count_of(const ResizePass& pass, int x) { return pass.axis.count[static_cast<size_t>(pass.begin + x)]; }
ptrdiff_t place_of(const ResizePass& pass, int x) { return pass.flip ? pass.count - 1 - x : x; }

// 4 pixels of 4 bytes, or 2 where vectors are short, become 16-bit lanes in which the channels of neighbours are pairs:
// R0 R1 G0 G1 B0 B1 X0 X1, R2 R3 … A multiplication by pairs of weights and the addition of both products is one
// instruction.
using Lanes = hn::CappedTag<int16_t, 16>;
using Sums = hn::RepartitionToWide<Lanes>;
constexpr int kPixels = static_cast<int>(hn::MaxLanes(Lanes()) / 4);
using FourSums = hn::FixedTag<int32_t, 4>;
using Accumulator = hn::Vec<Sums>;

struct Patterns {
  // Bytes of 4 pixels, which are in each block of 16 bytes too, and zeros (128) between them.
  alignas(32) uint8_t pixels[32] = {0, 128, 4,  128, 1, 128, 5,  128, 2,  128, 6,  128, 3,  128, 7,  128,
                                    8, 128, 12, 128, 9, 128, 13, 128, 10, 128, 14, 128, 11, 128, 15, 128};
  // Of 4 weights, which are in each block of 16 bytes, the first block takes a pair and the second one the next.
  alignas(32) uint8_t weights[32] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3,
                                     4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7};
};

// The sums of a pixel's four channels, rounded.
template <typename V>
hn::Vec<FourSums> rounded(V sums) {
  const FourSums d;
  if constexpr (hn::MaxLanes(Sums()) == 8) {
    const auto four = hn::Add(hn::LowerHalf(d, sums), hn::UpperHalf(d, sums));
    return hn::ShiftRight<kWeightBits>(hn::Add(four, hn::Set(d, kHalf)));
  } else {
    return hn::ShiftRight<kWeightBits>(hn::Add(sums, hn::Set(d, kHalf)));
  }
}

void store_one(Accumulator sums, uint8_t* to) {
  const hn::FixedTag<uint8_t, 4> pixel_bytes;
  const auto words = hn::DemoteTo(hn::FixedTag<int16_t, 4>(), rounded(sums));
  hn::StoreU(hn::DemoteTo(pixel_bytes, words), pixel_bytes, to);
}

// The same pixel of four rows. Their channels are packed together, which works in blocks of 16 bytes.
void store_four(const Accumulator* sums, uint8_t* to, ptrdiff_t stride) {
  const Sums d;
  const hn::Repartition<int16_t, Sums> words;
  const hn::Rebind<uint8_t, hn::Repartition<int16_t, Sums>> bytes;
  const auto shifted = [&d](Accumulator four) { return hn::ShiftRight<kWeightBits>(hn::Add(four, hn::Set(d, kHalf))); };
  const auto store = [to, stride](ptrdiff_t row, int32_t pixel) {
    std::memcpy(to + row * stride, &pixel, sizeof(pixel));
  };
  const hn::Repartition<int32_t, decltype(bytes)> pixels;
  if constexpr (hn::MaxLanes(Sums()) == 8) {
    const auto both = [&](Accumulator a, Accumulator b) {
      return shifted(hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a)));
    };
    const auto rows0213 = hn::ReorderDemote2To(words, both(sums[0], sums[1]), both(sums[2], sums[3]));
    const auto packed = hn::BitCast(pixels, hn::DemoteTo(bytes, rows0213));
    store(0, hn::ExtractLane(packed, 0));
    store(2, hn::ExtractLane(packed, 1));
    store(1, hn::ExtractLane(packed, 2));
    store(3, hn::ExtractLane(packed, 3));
  } else {
    for (size_t row = 0; row < 4; row += 2) {
      const auto two = hn::ReorderDemote2To(words, shifted(sums[row]), shifted(sums[row + 1]));
      const auto packed = hn::BitCast(pixels, hn::DemoteTo(bytes, two));
      store(row, hn::ExtractLane(packed, 0));
      store(row + 1, hn::ExtractLane(packed, 1));
    }
  }
}

// Resizes kRows rows at once, which share the loads of the weights. A decoded image is larger than the first cache, and
// begins so many streams of memory at once that the processor's own prefetching comes late: asked for a turn before,
// the rows take half of the time. What the pass says is copied first: for all that the compiler knows, a byte that is
// written may be a part of it.
template <ptrdiff_t kRows>
void resize_some_rows(const ResizePass& pass, const uint8_t* from, uint8_t* to) {
  const Lanes d;
  const Sums d32;
  const hn::Repartition<uint8_t, Lanes> all_bytes;
  const Patterns patterns;
  const auto pixel_pattern = hn::LoadU(all_bytes, patterns.pixels);
  const auto weight_pattern = hn::LoadU(all_bytes, patterns.weights);
  const int *const firsts = pass.axis.first.data() + pass.begin, *const counts = pass.axis.count.data() + pass.begin;
  const ptrdiff_t from_stride = pass.from.stride, to_stride = pass.to.stride;
  const auto room = static_cast<size_t>(pass.axis.taps);
  const ptrdiff_t step = pass.flip ? -4 : 4;
  const int count = pass.count;
  const int16_t* weights = weights_of(pass, 0);
  from += 4 * static_cast<ptrdiff_t>(pass.origin);
  to += pass.flip ? 4 * static_cast<ptrdiff_t>(count - 1) : 0;
  for (int x = 0; x < count; ++x, weights += room, to += step) {
    const uint8_t* const pixels = from + 4 * static_cast<ptrdiff_t>(firsts[x]);
    const int taps = counts[x];
    Accumulator sums[kRows], more[kRows];
    for (ptrdiff_t r = 0; r < kRows; ++r) sums[r] = more[r] = hn::Zero(d32);
    for (ptrdiff_t r = kRows; r < 2 * kRows; ++r) hwy::Prefetch(pixels + r * from_stride);  // of the rows after these
    for (int tap = 0; tap < taps; tap += kPixels) {
      const auto both = hn::BitCast(all_bytes, hn::LoadDup128(d, weights + tap));
      const auto k = hn::BitCast(d, hn::TableLookupBytes(both, weight_pattern));
      for (ptrdiff_t r = 0; r < kRows; ++r) {
        const auto bytes = hn::LoadDup128(all_bytes, pixels + r * from_stride + 4 * tap);
        const auto pairs = hn::BitCast(d, hn::TableLookupBytesOr0(bytes, pixel_pattern));
        sums[r] = hn::ReorderWidenMulAccumulate(d32, pairs, k, sums[r], more[r]);
      }
    }
    for (ptrdiff_t r = 0; r < kRows; ++r) sums[r] = hn::RearrangeToOddPlusEven(sums[r], more[r]);
    if constexpr (kRows == 4) {
      store_four(sums, to, to_stride);
    } else {
      for (ptrdiff_t r = 0; r < kRows; ++r) store_one(sums[r], to + r * to_stride);
    }
  }
}

void colour_rows(const ResizePass& pass) {
  constexpr int kTogether = 4;
  int y = 0;
  const auto from = [&] { return pass.from.first + y * pass.from.stride; };
  const auto to = [&] { return pass.to.first + y * pass.to.stride; };
  for (; y + kTogether <= pass.other; y += kTogether) resize_some_rows<kTogether>(pass, from(), to());
  for (; y < pass.other; ++y) resize_some_rows<1>(pass, from(), to());
}

void grey_rows(const ResizePass& pass) {
  for (int y = 0; y < pass.other; ++y) {
    const uint8_t* from = pass.from.first + y * pass.from.stride;
    uint8_t* to = pass.to.first + y * pass.to.stride;
    for (int x = 0; x < pass.count; ++x) {
      const int16_t* weights = weights_of(pass, x);
      const uint8_t* pixels = from + first_of(pass, x);
      int sum = kHalf;
      for (int tap = 0; tap < count_of(pass, x); ++tap) sum += weights[tap] * pixels[tap];
      to[place_of(pass, x)] = static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
    }
  }
}

// The sums of a vector of bytes, of which two rows are interleaved at a time: a0 b0 a1 b1 … as 16-bit lanes. The steps
// that widen and those that narrow again both work in blocks of 16 bytes, so that each byte ends where it began.
struct ColumnSums {
  using D8 = hn::ScalableTag<uint8_t>;
  using D16 = hn::Repartition<int16_t, D8>;
  using D32 = hn::Repartition<int32_t, D8>;
  using V32 = hn::Vec<D32>;

  ColumnSums() {
    for (size_t i = 0; i < 4; ++i) sums[i] = more[i] = hn::Zero(D32());
  }

  void add(hn::Vec<D8> a, hn::Vec<D8> b, hn::Vec<D16> weights) {
    const D8 d8;
    const auto lower = hn::InterleaveLower(d8, a, b), upper = hn::InterleaveUpper(d8, a, b);
    add_pairs(lower, weights, sums, more);
    add_pairs(upper, weights, sums + 2, more + 2);
  }

  // Sums are 0 to 255 now. The two vectors of 16-bit lanes become one whose even bytes are the first half of each
  // block, and then one in order.
  hn::Vec<D8> rounded() const {
    alignas(16) static constexpr uint8_t kInOrder[16] = {0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15};
    const D16 d16;
    const auto first = hn::ReorderDemote2To(d16, total(0), total(1));
    const auto second = hn::ReorderDemote2To(d16, total(2), total(3));
    return hn::TableLookupBytes(hn::BitCast(D8(), hn::Or(first, hn::ShiftLeft<8>(second))),
                                hn::LoadDup128(D8(), kInOrder));
  }

  static void add_pairs(hn::Vec<D8> pairs, hn::Vec<D16> weights, V32* to, V32* rest) {
    const D8 d8;
    const D16 d16;
    const auto none = hn::Zero(d8);
    to[0] = hn::ReorderWidenMulAccumulate(D32(), hn::BitCast(d16, hn::InterleaveLower(d8, pairs, none)), weights, to[0],
                                          rest[0]);
    to[1] = hn::ReorderWidenMulAccumulate(D32(), hn::BitCast(d16, hn::InterleaveUpper(d8, pairs, none)), weights, to[1],
                                          rest[1]);
  }
  V32 total(size_t i) const {
    const auto sum = hn::Add(hn::RearrangeToOddPlusEven(sums[i], more[i]), hn::Set(D32(), kHalf));
    return hn::ShiftRight<kWeightBits>(sum);
  }

  V32 sums[4], more[4];
};

// The weight after the last one of an odd number is 0, and its row need not exist: the last row stands in for it.
void columns(const ResizePass& pass) {
  const ColumnSums::D8 d8;
  const size_t step = hn::Lanes(d8);
  for (int y = 0; y < pass.count; ++y) {
    const int16_t* weights = weights_of(pass, y);
    const int taps = count_of(pass, y);
    const uint8_t* const rows = pass.from.first + first_of(pass, y) * pass.from.stride;
    uint8_t* const to = pass.to.first + place_of(pass, y) * pass.to.stride;
    for (size_t x = 0; x < static_cast<size_t>(pass.other); x += step) {
      ColumnSums sums;
      for (int tap = 0; tap < taps; tap += 2) {
        const uint8_t* const a = rows + tap * pass.from.stride + x;
        const uint8_t* const b = tap + 1 < taps ? a + pass.from.stride : a;
        int32_t both;
        std::memcpy(&both, weights + tap, sizeof(both));
        const auto k = hn::BitCast(ColumnSums::D16(), hn::Set(ColumnSums::D32(), both));
        sums.add(hn::LoadU(d8, a), hn::LoadU(d8, b), k);
      }
      hn::StoreU(sums.rounded(), d8, to + x);
    }
  }
}

}  // namespace
}  // namespace lockstep::image::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::image {

HWY_EXPORT(colour_rows);
HWY_EXPORT(grey_rows);
HWY_EXPORT(columns);

void resize_colour_rows(const ResizePass& pass) { HWY_DYNAMIC_DISPATCH(colour_rows)(pass); }
void resize_grey_rows(const ResizePass& pass) { HWY_DYNAMIC_DISPATCH(grey_rows)(pass); }
void resize_columns(const ResizePass& pass) { HWY_DYNAMIC_DISPATCH(columns)(pass); }

}  // namespace lockstep::image
#endif
