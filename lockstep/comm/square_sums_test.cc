#include "lockstep/comm/square_sums.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/comm/reduce.h"

namespace lockstep::comm {
namespace {

TEST(SquareSums, OneForEachBlockOfEachTensor) {
  const at::Tensor small = at::full({3}, 2.0f), large = at::ones({kBlockElements + 5}).to(at::kBFloat16);
  const at::Tensor sums = at::full({3}, -1.0, at::kDouble);
  take_square_sums({small, large}, sums);
  EXPECT_TRUE(at::equal(sums, at::tensor({12.0, static_cast<double>(kBlockElements), 5.0}, at::kDouble))) << sums;
}

}  // namespace
}  // namespace lockstep::comm
