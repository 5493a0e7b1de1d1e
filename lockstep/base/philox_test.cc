#include "lockstep/base/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace lockstep {
namespace {

using Block = std::array<uint32_t, 4>;

// The known answers that Random123 publishes for philox4x32-10 (kat_vectors).
TEST(Philox, PublishedVectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, IsAFunctionOfItsKey) {
  const auto draw = [](uint64_t seed, Purpose purpose, uint32_t epoch, uint64_t index) {
    RandomStream stream(seed, purpose, epoch, index);
    std::vector<uint32_t> numbers(9);
    for (auto& number : numbers) number = stream.bits();
    return numbers;
  };
  const auto reference = draw(1, Purpose::kAugment, 2, 3);
  EXPECT_EQ(draw(1, Purpose::kAugment, 2, 3), reference);
  EXPECT_NE(draw(2, Purpose::kAugment, 2, 3), reference);
  EXPECT_NE(draw(1, Purpose::kInit, 2, 3), reference);
  EXPECT_NE(draw(1, Purpose::kAugment, 3, 3), reference);
  EXPECT_NE(draw(1, Purpose::kAugment, 2, 4), reference);
  EXPECT_NE(draw(1, Purpose::kAugment, 2, 3 + (1ull << 32)), reference);
}

// Neighbours would otherwise draw each other's numbers a block later.
TEST(RandomStream, StreamsOfNeighboursHaveNoNumberInCommon) {
  std::set<uint32_t> numbers;
  for (uint32_t epoch = 0; epoch < 4; ++epoch) {
    for (uint64_t index = 0; index < 4; ++index) {
      RandomStream stream(1, Purpose::kAugment, epoch, index);
      for (int i = 0; i < 64; ++i) numbers.insert(stream.bits());
    }
  }
  EXPECT_EQ(numbers.size(), 4u * 4 * 64);
}

TEST(RandomStream, HasTheMomentsOfItsDistributions) {
  RandomStream stream(7, Purpose::kInit, 0, 0);
  const int n = 100000;
  double uniform = 0, normal = 0, square = 0;
  std::vector<int> counts(6);
  for (int i = 0; i < n; ++i) {
    uniform += stream.uniform();
    const double z = stream.normal();
    normal += z;
    square += z * z;
    ++counts[stream.below(6)];
  }
  EXPECT_NEAR(uniform / n, 0.5, 0.005);
  EXPECT_NEAR(normal / n, 0, 0.015);
  EXPECT_NEAR(square / n, 1, 0.02);
  for (const int count : counts) EXPECT_NEAR(count, n / 6.0, 5 * std::sqrt(n / 6.0));
}

TEST(KernelSeed, DiffersByStepAndLane) {
  std::set<uint32_t> seeds;
  for (uint64_t step = 0; step < 50; ++step) {
    for (uint32_t lane = 0; lane < 8; ++lane) seeds.insert(kernel_seed(1, step, lane));
  }
  EXPECT_EQ(seeds.size(), 400u);
}

}  // namespace
}  // namespace lockstep
