#include "lockstep/image/jpeg_blocks.h"

#include <bit>
#include <cstring>

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again. Here that gives shifts by any number of bits in one instruction.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/image/jpeg_blocks.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lockstep::image::HWY_NAMESPACE {
namespace {

// The place of each coefficient in its block.
constexpr uint8_t kPlaces[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
                                 41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
                                 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
constexpr uint32_t kLast = 63;  // coefficient
constexpr int kTogether = 3;    // looks at a table between two fills

// There are 56 bits or more afterwards. Those beyond are right too, and may be read again.
HWY_INLINE void fill(JpegBits& in) {
  uint64_t bytes;
  std::memcpy(&bytes, in.next, sizeof(bytes));
  if constexpr (std::endian::native == std::endian::little) bytes = __builtin_bswap64(bytes);
  in.bits |= bytes >> in.count;
  in.next += (63 - in.count) >> 3;
  in.count |= 56;
}

HWY_INLINE void drop(JpegBits& in, uint32_t count) {
  in.bits <<= count;
  in.count -= static_cast<int>(count);
}

// The entry of what comes next, which is taken. A short one is at most kBits long, a long one 31 bits.
HWY_INLINE HuffmanEntry take(const HuffmanTable& table, JpegBits& in) {
  HuffmanEntry entry = table.entries[in.bits >> (64 - HuffmanTable::kBits)];
  if (HWY_UNLIKELY((entry & kHuffmanLong) != 0)) {
    fill(in);
    entry = table.resolve(entry & ~kHuffmanLong, in.bits);
  }
  drop(in, entry & 0x3f);
  return entry;
}

HWY_INLINE uint32_t further_of(HuffmanEntry entry) { return entry >> 8 & 0xff; }
HWY_INLINE int16_t value_of(HuffmanEntry entry) { return static_cast<int16_t>(static_cast<int32_t>(entry) >> 16); }

HWY_INLINE bool take_dc(const JpegBlock& block, JpegBits& in) {
  fill(in);
  const HuffmanEntry entry = take(*block.dc, in);
  *block.last_dc += value_of(entry);
  return further_of(entry) == 0 && *block.last_dc == static_cast<int16_t>(*block.last_dc);
}

// All coefficients but the first.
HWY_INLINE bool take_ac(const HuffmanTable& table, JpegBits& in, int16_t* to) {
  for (uint32_t at = 0;;) {
    fill(in);
    for (int i = 0; i < kTogether; ++i) {
      const HuffmanEntry entry = take(table, in);
      at += further_of(entry);
      if (at >= kLast) {
        if (at == kLast) to[kLast] = value_of(entry);
        return at == kLast || further_of(entry) == kHuffmanEnd;
      }
      to[kPlaces[at]] = value_of(entry);
    }
  }
}

HWY_INLINE bool skip_ac(const HuffmanTable& table, JpegBits& in) {
  for (uint32_t at = 0;;) {
    fill(in);
    for (int i = 0; i < kTogether; ++i) {
      const uint32_t skip = table.skips[in.bits >> (64 - HuffmanTable::kBits)];
      const uint32_t after = at + (skip >> 8 & 0x7f);
      if (after < kLast) {
        drop(in, skip & 0x3f);
        if ((skip & kSkipEnd) != 0) return true;
        at = after;
        continue;
      }
      const HuffmanEntry entry = take(table, in);
      at += further_of(entry);
      if (at >= kLast) return at == kLast || further_of(entry) == kHuffmanEnd;
    }
  }
}

bool decode(const JpegBlock* from, int count, JpegBits& state, int16_t* const* blocks) {
  JpegBits in = state;
  bool is_sound = true;
  for (int i = 0; i < count && is_sound; ++i) {
    const JpegBlock& block = from[i];
    is_sound = take_dc(block, in);
    if (blocks != nullptr && block.is_wanted) {
      int16_t* const to = blocks[i];
      to[0] = static_cast<int16_t>(*block.last_dc);
      is_sound = is_sound && take_ac(*block.ac, in, to);
    } else {
      is_sound = is_sound && skip_ac(*block.ac, in);
    }
  }
  state = in;
  return is_sound;
}

}  // namespace
}  // namespace lockstep::image::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::image {

HWY_EXPORT(decode);

bool decode_jpeg_blocks(const JpegBlock* from, int count, JpegBits& in, int16_t* const* blocks) {
  return HWY_DYNAMIC_DISPATCH(decode)(from, count, in, blocks);
}

}  // namespace lockstep::image
#endif
