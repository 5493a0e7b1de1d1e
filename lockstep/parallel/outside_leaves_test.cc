#include "lockstep/parallel/outside_leaves.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::parallel {
namespace {

at::Tensor leaf(double value) { return at::full({2}, value).requires_grad_(); }

void train(const at::Tensor& tensor) {
  const c10::NoGradGuard no_grad;
  tensor.add_(1);
}

TEST(OutsideLeaves, ALeafThatHasChangedIsTrained) {
  OutsideLeaves leaves;
  const at::Tensor kept = leaf(1), trained = leaf(2);
  for (int run = 0; run < 3; ++run) EXPECT_FALSE(leaves.find_trained((kept * trained).sum()).defined());
  train(trained);
  EXPECT_TRUE(leaves.find_trained((kept * trained).sum()).is_same(trained));
}

// Another one each time, mostly at the address of the one before.
TEST(OutsideLeaves, InputsThatNeedAGradientAreNot) {
  OutsideLeaves leaves;
  for (int run = 0; run < 20; ++run) EXPECT_FALSE(leaves.find_trained(leaf(run).sum()).defined()) << run;
}

TEST(OutsideLeaves, OneThatJoinsLaterIsSeenInALaterLook) {
  for (const int joins : {5, 7, 20, 50, 1500}) {
    OutsideLeaves leaves;
    const at::Tensor input = leaf(1), late = leaf(2);
    int seen = -1;
    for (int run = 0; run < 4096 && seen < 0; ++run) {
      train(late);
      if (leaves.find_trained((run < joins ? input : input * late).sum()).defined()) seen = run;
    }
    EXPECT_GT(seen, joins);
    EXPECT_LE(seen, std::max(2 * joins, 16)) << "joined in run " << joins;
  }
}

// It is noted in a loss of one kind of runs, and not in the other.
TEST(OutsideLeaves, OneOfTwoLossesIsSeen) {
  OutsideLeaves leaves;
  const at::Tensor input = leaf(1), weight = leaf(2);
  EXPECT_FALSE(leaves.find_trained((input * weight).sum()).defined());
  EXPECT_FALSE(leaves.find_trained(input.sum()).defined());
  train(weight);
  EXPECT_TRUE(leaves.find_trained((input * weight).sum()).is_same(weight));
}

}  // namespace
}  // namespace lockstep::parallel
