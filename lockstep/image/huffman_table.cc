#include "lockstep/image/huffman_table.h"

#include <algorithm>

namespace lockstep::image {
namespace {

constexpr int kMostBits = 16;          // of a code
constexpr uint32_t kMostFurther = 63;  // coefficients of a block behind the first

// The value of `size` bits, of which the highest tells the sign.
int extended(uint32_t bits, uint32_t size) {
  const auto value = static_cast<int>(bits);
  return bits < 1u << (size - 1) ? value - (1 << size) + 1 : value;
}

uint32_t bits_of(HuffmanEntry entry) { return entry & 0x3f; }
uint32_t further_of(HuffmanEntry entry) { return entry >> 8 & 0xff; }

}  // namespace

void HuffmanTable::fill_limits() {
  uint32_t code = 0, place = 0;
  for (size_t length = 1; length <= kMostBits; ++length) {
    offsets[length] = static_cast<int>(place) - static_cast<int>(code);
    code += codes.counts[length];
    place += codes.counts[length];
    limits[length] = code << (kMostBits - length);
    code <<= 1;
  }
}

// Of a symbol whose code has `length` bits; `bits` begin with the code.
HuffmanEntry HuffmanTable::entry_of(uint32_t symbol, int length, uint64_t bits) const {
  const uint32_t run = symbol >> 4, size = symbol & 15;
  const auto code_bits = static_cast<uint32_t>(length);
  if (size == 0) return code_bits | (!is_ac ? 0 : run == 15 ? 16 : kHuffmanEnd) << 8;
  const int value = extended(static_cast<uint32_t>(bits << length >> (64 - size)), size);
  return (code_bits + size) | (is_ac ? run + 1 : 0) << 8 | static_cast<uint32_t>(value) << 16;
}

HuffmanEntry HuffmanTable::resolve(HuffmanEntry entry, uint64_t bits) const {
  const uint32_t known = entry & 31;
  if (known > 0) return entry_of(entry >> 8, static_cast<int>(known), bits);
  const auto code = static_cast<uint32_t>(bits >> (64 - kMostBits));
  for (int length = kBits + 1; length <= kMostBits; ++length) {
    const auto at = static_cast<size_t>(length);
    if (code >= limits[at]) continue;
    const int place = static_cast<int>(code >> (kMostBits - length)) + offsets[at];
    return entry_of(codes.symbols[static_cast<size_t>(place) & 255], length, bits);
  }
  return kHuffmanInvalid << 8;
}

// The entries of all bits that begin with a code of kBits or fewer.
void HuffmanTable::fill_entries(uint32_t symbol, int length, uint32_t code) {
  const auto size = static_cast<int>(symbol & 15);
  const bool is_whole = length + size <= kBits;
  const int rest = kBits - length - (is_whole ? size : 0);  // bits of which none matters
  HuffmanEntry* to = entries.data() + (size_t{code} << (kBits - length));
  for (uint32_t value = 0; value < (is_whole ? 1u << size : 1u); ++value) {
    const uint64_t bits = (uint64_t{code} << size | value) << (64 - length - size);
    const HuffmanEntry entry =
        is_whole ? entry_of(symbol, length, bits) : kHuffmanLong | static_cast<uint32_t>(length) | symbol << 8;
    to = std::fill_n(to, size_t{1} << rest, entry);
  }
}

// As many symbols of a block as the bits hold.
void HuffmanTable::fill_skips() {
  constexpr uint32_t kMask = (1u << kBits) - 1;
  for (uint32_t bits = 0; bits <= kMask; ++bits) {
    uint32_t used = 0, further = 0;
    bool ends = false;
    while (!ends) {
      const HuffmanEntry next = entries[bits << used & kMask];
      const bool is_end = further_of(next) == kHuffmanEnd;
      const uint32_t more = is_end ? 0 : further_of(next);
      if ((next & kHuffmanLong) != 0 || used + bits_of(next) > kBits || further + more > kMostFurther) break;
      used += bits_of(next);
      further += more;
      ends = is_end;
    }
    if (used == 0) further = kSkipNothing;
    skips[bits] = static_cast<HuffmanSkip>(used | further << 8 | (ends ? kSkipEnd : 0));
  }
}

void HuffmanTable::build(const HuffmanCodes& from, bool ac) {
  codes = from;
  is_ac = ac;
  fill_limits();
  entries.fill(kHuffmanLong);
  uint32_t code = 0;
  size_t place = 0;
  for (int length = 1; length <= kBits; ++length, code <<= 1) {
    for (int i = 0; i < codes.counts[static_cast<size_t>(length)]; ++i) {
      fill_entries(codes.symbols[place++], length, code++);
    }
  }
  if (is_ac) fill_skips();
}

}  // namespace lockstep::image
