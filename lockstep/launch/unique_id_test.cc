#include "lockstep/launch/unique_id.h"

#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

TEST(UniqueId, IsAnotherEachTimeAndOneWord) {
  const std::string one = unique_id();
  EXPECT_NE(one, unique_id());
  EXPECT_GT(one.size(), 8U);
  EXPECT_EQ(one.find_first_of(" /\n"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::launch
