#include "lockstep/image/huffman_table.h"

#include <gtest/gtest.h>

#include <vector>

#include "lockstep/base/philox.h"

namespace lockstep::image {
namespace {

// What begins with `bits`, found bit by bit as the standard describes it.
struct Found {
  uint32_t bits = 0, further = 0;
  int value = 0;
  bool operator==(const Found&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Found& found) {
  return out << found.bits << " bits, " << found.further << " further, value " << found.value;
}

Found found_by_bits(const HuffmanCodes& codes, bool is_ac, uint64_t bits) {
  int code = 0, first = 0, place = 0;
  for (int length = 1; length <= 16; ++length) {
    const int count = codes.counts[static_cast<size_t>(length)];
    code = code << 1 | static_cast<int>(bits >> (64 - length) & 1);
    first <<= 1;
    if (code - first < count) {
      const int symbol = codes.symbols[static_cast<size_t>(place + code - first)], size = symbol % 16;
      const uint32_t run = static_cast<uint32_t>(symbol) / 16;
      Found found{.bits = static_cast<uint32_t>(length + size), .further = is_ac ? run + 1 : 0};
      if (size == 0 && is_ac && run < 15) found.further = kHuffmanEnd;
      for (int i = 0; i < size; ++i) found.value = found.value << 1 | static_cast<int>(bits >> (63 - length - i) & 1);
      if (size > 0 && found.value < 1 << (size - 1)) found.value -= (1 << size) - 1;
      return found;
    }
    place += count;
    first += count;
  }
  return {.further = kHuffmanInvalid};
}

Found found_in(const HuffmanTable& table, uint64_t bits) {
  HuffmanEntry entry = table.entries[bits >> (64 - HuffmanTable::kBits)];
  if ((entry & kHuffmanLong) != 0) entry = table.resolve(entry & ~kHuffmanLong, bits);
  return {entry & 0xff, entry >> 8 & 0xff, static_cast<int16_t>(entry >> 16)};
}

// A legal tree, which leaves out codes of ones alone: sparse for a small `share`, which is in 64ths.
HuffmanCodes random_codes(RandomStream& random, bool is_ac, uint32_t share) {
  HuffmanCodes codes;
  int free = 1, count = 0;
  for (size_t length = 1; length <= 16; ++length) {
    free = 2 * free;
    int taken = 0;
    while (taken < free - 1 && count + taken < 250 && random.below(64) < share) ++taken;
    codes.counts[length] = static_cast<uint8_t>(taken);
    for (int i = 0; i < taken; ++i) {
      codes.symbols[static_cast<size_t>(count++)] = static_cast<uint8_t>(random.below(is_ac ? 256 : 16));
    }
    free -= taken;
  }
  return codes;
}

uint64_t random_bits(RandomStream& random) {
  return uint64_t{random.below(0xffffffff)} << 32 | random.below(0xffffffff);
}

TEST(HuffmanTable, FindsWhatStandsThereBitByBit) {
  RandomStream random(1, Purpose::kSynthetic, 0, 0);
  HuffmanTable table;
  int long_ones = 0, invalid = 0;
  for (int round = 0; round < 60; ++round) {
    const bool is_ac = round % 2 == 0;
    const HuffmanCodes codes = random_codes(random, is_ac, 20 + static_cast<uint32_t>(round) % 40);
    table.build(codes, is_ac);
    for (int i = 0; i < 3000; ++i) {
      const uint64_t bits = random_bits(random);
      const Found wanted = found_by_bits(codes, is_ac, bits);
      ASSERT_EQ(found_in(table, bits), wanted) << std::hex << bits;
      long_ones += wanted.bits > HuffmanTable::kBits;
      invalid += wanted.further == kHuffmanInvalid;
    }
  }
  EXPECT_GT(long_ones, 1000);
  EXPECT_GT(invalid, 1000);
}

TEST(HuffmanTable, PassesOverWholeSymbols) {
  RandomStream random(2, Purpose::kSynthetic, 0, 0);
  HuffmanTable table;
  int several = 0;
  for (int round = 0; round < 40; ++round) {
    const HuffmanCodes codes = random_codes(random, true, 30 + static_cast<uint32_t>(round) % 30);
    table.build(codes, true);
    for (int i = 0; i < 2000; ++i) {
      const uint64_t bits = random_bits(random);
      const uint32_t skip = table.skips[bits >> (64 - HuffmanTable::kBits)];
      const uint32_t used = skip & 0xff, further = skip >> 8 & 0x7f;
      if (further == kSkipNothing) continue;
      uint32_t stepped = 0, led = 0, symbols = 0;
      bool ends = false;
      while (stepped < used) {
        const Found found = found_by_bits(codes, true, bits << stepped);
        ASSERT_FALSE(ends);
        stepped += found.bits;
        ends = found.further == kHuffmanEnd;
        led += ends ? 0 : found.further;
        ++symbols;
      }
      ASSERT_EQ(stepped, used);
      ASSERT_EQ(led, further);
      ASSERT_EQ(ends, (skip & kSkipEnd) != 0);
      several += symbols > 1;
    }
  }
  EXPECT_GT(several, 1000);
}

}  // namespace
}  // namespace lockstep::image
