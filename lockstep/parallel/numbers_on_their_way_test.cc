#include "lockstep/parallel/numbers_on_their_way.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

TEST(NumbersOnTheirWay, AreThoseOfWhenTheySetOut) {
  const at::Tensor numbers = at::arange(5, at::kDouble);
  const NumbersOnTheirWay on_their_way(numbers);
  numbers.zero_();
  EXPECT_TRUE(at::equal(on_their_way.read(), at::arange(5, at::kDouble)));
}

}  // namespace
}  // namespace lockstep::parallel
