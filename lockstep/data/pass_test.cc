#include "lockstep/data/pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;

Pass<int> up_to(int end) {
  return Pass<int>([i = 0, end]() mutable { return i < end ? std::optional(i++) : std::nullopt; });
}

TEST(Pass, GivesItemsOneByOne) {
  std::vector<int> all;
  for (const int item : up_to(3)) all.push_back(item);
  EXPECT_THAT(all, ElementsAre(0, 1, 2));
  for (const int item : up_to(0)) ADD_FAILURE() << item;
}

TEST(Pass, OfCopiesIsOne) {
  const Pass<int> pass = up_to(4), same = pass;
  EXPECT_EQ(pass.next(), 0);
  EXPECT_EQ(same.next(), 1);
  std::vector<int> rest;
  for (auto at = pass.begin(); at != pass.end(); at++) rest.push_back(*at);
  EXPECT_THAT(rest, ElementsAre(2, 3));
  EXPECT_EQ(same.next(), std::nullopt);
}

}  // namespace
}  // namespace lockstep::data
