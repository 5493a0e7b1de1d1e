#include "lockstep/image/jpeg_blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <vector>

#include "lockstep/base/philox.h"
#include "lockstep/base/testing/instruction_sets.h"

namespace lockstep::image {
namespace {

using Coefficients = std::array<int, 64>;  // in zigzag order

// Codes of 8 bits for the symbols from 0 on.
HuffmanCodes codes_of_8_bits(int symbols) {
  HuffmanCodes codes;
  codes.counts[8] = static_cast<uint8_t>(symbols);
  for (size_t i = 0; i < static_cast<size_t>(symbols); ++i) codes.symbols[i] = static_cast<uint8_t>(i);
  return codes;
}

// Writes blocks in those codes.
class Writer {
 public:
  void block(const Coefficients& of) {
    symbol(0, of[0] - last_dc_);
    last_dc_ = of[0];
    int run = 0;
    for (size_t i = 1; i < of.size(); ++i) {
      if (of[i] == 0) {
        ++run;
        continue;
      }
      for (; run > 15; run -= 16) bits(0xf0, 8);
      symbol(run, of[i]);
      run = 0;
    }
    if (run > 0) bits(0, 8);
  }

  // The bytes, and as many zeros as may be read behind them.
  std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> bytes((bits_.size() + 7) / 8 + 3000);
    for (size_t i = 0; i < bits_.size(); ++i) bytes[i / 8] |= static_cast<uint8_t>(bits_[i] << (7 - i % 8));
    return bytes;
  }
  size_t count() const { return bits_.size(); }

 private:
  void bits(unsigned value, int count) {
    for (int i = count - 1; i >= 0; --i) bits_.push_back(value >> i & 1);
  }
  void symbol(int run, int value) {
    const int size = std::bit_width(static_cast<unsigned>(std::abs(value)));
    bits(static_cast<unsigned>(16 * run + size), 8);
    bits(static_cast<unsigned>(value < 0 ? value + (1 << size) - 1 : value), size);
  }

  std::vector<unsigned> bits_;
  int last_dc_ = 0;
};

Coefficients random_block(RandomStream& random) {
  Coefficients block{};
  const uint32_t share = random.below(64);
  for (int& value : block) {
    const int most = 1 << random.below(11);
    if (random.below(64) <= share) value = static_cast<int>(random.below(static_cast<uint32_t>(2 * most))) - most;
  }
  return block;
}

// The row-by-row place of each coefficient, by walking the diagonals.
std::array<size_t, 64> zigzag() {
  std::array<size_t, 64> places{};
  size_t i = 0;
  for (size_t sum = 0; sum < 15; ++sum) {
    for (size_t step = 0; step <= sum; ++step) {
      const size_t row = sum % 2 == 0 ? sum - step : step, column = sum - row;
      if (row < 8 && column < 8) places[i++] = 8 * row + column;
    }
  }
  return places;
}

TEST(JpegBlocks, EncodedBlocksComeBackOrArePassedOver) {
  const auto places = zigzag();
  HuffmanTable dc, ac;
  dc.build(codes_of_8_bits(16), false);
  ac.build(codes_of_8_bits(255), true);
  testing_support::with_each_instruction_set([&] {
    RandomStream random(1, Purpose::kSynthetic, 0, 0);
    for (int round = 0; round < 500; ++round) {
      std::array<Coefficients, 4> wanted;
      Writer writer;
      for (Coefficients& block : wanted) writer.block(block = random_block(random));
      const auto bytes = writer.bytes();
      int last_dc = 0;
      std::array<JpegBlock, 4> blocks;
      blocks.fill({.dc = &dc, .ac = &ac, .last_dc = &last_dc});
      blocks[2].is_wanted = false;
      std::array<std::array<int16_t, 64>, 4> found{};
      std::array<int16_t*, 4> to = {found[0].data(), found[1].data(), found[2].data(), found[3].data()};
      JpegBits in{.next = bytes.data()};
      ASSERT_TRUE(decode_jpeg_blocks(blocks.data(), 4, in, round % 4 == 3 ? nullptr : to.data()));
      EXPECT_EQ(8 * (in.next - bytes.data()) - in.count, static_cast<ptrdiff_t>(writer.count()));
      EXPECT_EQ(last_dc, wanted[3][0]);
      for (size_t b = 0; b < 4; ++b) {
        const bool is_there = b != 2 && round % 4 != 3;
        for (size_t i = 0; i < 64; ++i) ASSERT_EQ(found[b][places[i]], is_there ? wanted[b][i] : 0) << b << ' ' << i;
      }
    }
  });
}

TEST(JpegBlocks, RefusesWhatNoEncoderWrites) {
  HuffmanTable dc, ac;
  dc.build(codes_of_8_bits(16), false);
  ac.build(codes_of_8_bits(200), true);
  const auto is_sound = [&](const std::vector<uint8_t>& begin) {
    std::vector<uint8_t> bytes = begin;
    bytes.resize(3000);
    int last_dc = 0;
    const JpegBlock block{.dc = &dc, .ac = &ac, .last_dc = &last_dc};
    std::array<int16_t, 64> found{};
    int16_t* const to = found.data();
    JpegBits wanted{.next = bytes.data()}, passed_over = wanted;
    const bool is_sound = decode_jpeg_blocks(&block, 1, wanted, &to);
    EXPECT_EQ(decode_jpeg_blocks(&block, 1, passed_over, nullptr), is_sound);
    return is_sound;
  };
  EXPECT_TRUE(is_sound({0, 0}));
  EXPECT_FALSE(is_sound({0, 0xfe})) << "no code";
  EXPECT_FALSE(is_sound({20, 0})) << "no code of a first coefficient";
  // A run of 11 zeros and a 1, again and again: a byte's code, and a bit.
  std::vector<uint8_t> runs(10);
  for (size_t i = 0; i < 8; ++i) {
    for (size_t bit = 0; bit < 8; ++bit)
      runs[1 + (9 * i + bit) / 8] |= (0xb1 >> (7 - bit) & 1) << (7 - (9 * i + bit) % 8);
  }
  EXPECT_FALSE(is_sound(runs)) << "beyond the block's end";
}

}  // namespace
}  // namespace lockstep::image
