#include "lockstep/base/late_number.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace lockstep {
namespace {

TEST(LateNumber, OfAValueIsThere) {
  const LateNumber number = 3;
  EXPECT_TRUE(number.is_there());
  EXPECT_EQ(number, 3);
  EXPECT_EQ(LateNumber(), 0);
}

TEST(LateNumber, GoesWhereNumbersGo) {
  const LateNumber number([] { return 2.5; });
  EXPECT_EQ(number.item<float>(), 2.5F);
  EXPECT_EQ(nlohmann::json({{"loss", number}}).dump(), R"({"loss":2.5})");
  EXPECT_EQ(std::max<double>(number, 3), 3);
}

TEST(LateNumber, IsReadOnceByAllItsCopies) {
  int reads = 0;
  const LateNumber number([&] { return ++reads + 0.5; });
  const LateNumber copy = number;
  EXPECT_FALSE(copy.is_there());
  EXPECT_EQ(reads, 0);
  EXPECT_EQ(copy, 1.5);
  EXPECT_EQ(number, 1.5);
  EXPECT_TRUE(number.is_there());
  EXPECT_EQ(reads, 1);
}

TEST(LateNumber, AReadThatFailsGivesNoNumber) {
  const LateNumber number([]() -> double { throw std::runtime_error("lost"); });
  for (int i = 0; i < 2; ++i) EXPECT_THROW(number.item(), std::runtime_error);
  EXPECT_FALSE(number.is_there());
}

}  // namespace
}  // namespace lockstep
