#include "lockstep/parallel/outside_leaves.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::parallel {
namespace {

at::Tensor leaf(double value) { return at::full({2}, value).requires_grad_(); }

at::Tensor look(OutsideLeaves& leaves, const at::Tensor& loss) {
  return leaves.find_trained({loss}, [](const at::Tensor&) { return false; });
}

void train(const at::Tensor& tensor) {
  const c10::NoGradGuard no_grad;
  tensor.add_(1);
}

TEST(OutsideLeaves, ALeafThatHasChangedIsTrained) {
  OutsideLeaves leaves;
  const at::Tensor kept = leaf(1), trained = leaf(2);
  for (int run = 0; run < 3; ++run) EXPECT_FALSE(look(leaves, (kept * trained).sum()).defined());
  train(trained);
  EXPECT_TRUE(look(leaves, (kept * trained).sum()).is_same(trained));
}

// Another one each time, mostly at the address of the one before.
TEST(OutsideLeaves, InputsThatNeedAGradientAreNot) {
  OutsideLeaves leaves;
  for (int run = 0; run < 20; ++run) EXPECT_FALSE(look(leaves, leaf(run).sum()).defined()) << run;
}

TEST(OutsideLeaves, OneThatJoinsLaterIsSeenInALaterLook) {
  for (const int joins : {5, 7, 20, 50, 1500}) {
    OutsideLeaves leaves;
    const at::Tensor input = leaf(1), late = leaf(2);
    int seen = -1;
    for (int run = 0; run < 4096 && seen < 0; ++run) {
      train(late);
      if (look(leaves, (run < joins ? input : input * late).sum()).defined()) seen = run;
    }
    EXPECT_GT(seen, joins);
    EXPECT_LE(seen, std::max(2 * joins, 16)) << "joined in run " << joins;
  }
}

// Of runs that add up, all of a look may come between two updates.
TEST(OutsideLeaves, OneThatChangesEverySoManyRunsIsSeen) {
  for (const int every : {2, 8, 16, 32}) {
    OutsideLeaves leaves;
    const at::Tensor input = leaf(1), weight = leaf(2);
    int seen = -1;
    for (int run = 0; run < 256 && seen < 0; ++run) {
      if (run > 0 && run % every == 0) train(weight);
      if (look(leaves, (input * weight).sum()).defined()) seen = run;
    }
    EXPECT_GE(seen, every);
    EXPECT_LE(seen, 2 * every);
  }
}

// It is noted in a loss of one kind of runs, and not in the other.
TEST(OutsideLeaves, OneOfTwoLossesIsSeen) {
  OutsideLeaves leaves;
  const at::Tensor input = leaf(1), weight = leaf(2);
  EXPECT_FALSE(look(leaves, (input * weight).sum()).defined());
  EXPECT_FALSE(look(leaves, input.sum()).defined());
  train(weight);
  EXPECT_TRUE(look(leaves, (input * weight).sum()).is_same(weight));
}

}  // namespace
}  // namespace lockstep::parallel
