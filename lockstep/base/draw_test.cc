#include "lockstep/base/draw.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep {
namespace {

TEST(Draw, SlotZeroIsTheStreamWithoutSlots) {
  RandomStream plain(5, Purpose::kAugment, 3, 9), slot = Draw{5, 3, 9}.stream(0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(slot.bits(), plain.bits());
}

TEST(Draw, SlotsShareNoNumber) {
  std::set<uint32_t> numbers;
  for (const uint32_t slot : {0u, 1u, 2u, 16u, 2048u, 4095u}) {
    RandomStream stream = Draw{5, 3, 9}.stream(slot);
    for (int i = 0; i < 64; ++i) numbers.insert(stream.bits());
  }
  EXPECT_EQ(numbers.size(), 6u * 64);

  // A slot has 2^22 numbers; the next one begins behind them.
  RandomStream first = Draw{5, 3, 9}.stream(0);
  for (int i = 0; i < 1 << 22; ++i) first.bits();
  RandomStream second = Draw{5, 3, 9}.stream(1);
  EXPECT_EQ(first.bits(), second.bits());
}

}  // namespace
}  // namespace lockstep
