#include "lockstep/parallel/leftover_gradients.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::ElementsAre;

TEST(LeftoverGradients, CommonOnesAreAddedToTheFoldedAndLocalOnesAreHandedOut) {
  LeftoverGradients leftovers;
  EXPECT_FALSE(leftovers.local(1).defined()) << "of a pass by hand, which has no list";
  leftovers.begin_step(3);
  leftovers.set_local(1, at::full({2}, 5));
  leftovers.set_common(0, at::full({2}, 3));
  leftovers.set_common(2, at::full({2}, 4).to_sparse());
  EXPECT_THAT(leftovers.local_ones(), ElementsAre(1));
  EXPECT_FALSE(leftovers.local(0).defined());
  EXPECT_TRUE(at::equal(leftovers.local(1), at::full({2}, 5)));
  std::vector<Tensor> folded = {at::ones({2}), at::ones({2}), at::ones({2}).to_sparse()};
  EXPECT_TRUE(leftovers.add_common(folded));
  EXPECT_TRUE(at::equal(folded[0], at::full({2}, 4.0f)));
  EXPECT_TRUE(at::equal(folded[1], at::ones({2})));
  EXPECT_TRUE(at::equal(folded[2].to_dense(), at::full({2}, 5.0f)));
}

TEST(LeftoverGradients, AreThoseOfOneStep) {
  LeftoverGradients leftovers;
  std::vector<Tensor> folded = {at::ones({2})};
  for (const bool cleared : {true, false}) {
    leftovers.begin_step(1);
    leftovers.set_local(0, at::ones({2}));
    leftovers.set_common(0, at::ones({2}));
    if (cleared) {
      leftovers.clear();
    } else {
      leftovers.begin_step(1);
    }
    EXPECT_FALSE(leftovers.local(0).defined());
    EXPECT_THAT(leftovers.local_ones(), ElementsAre());
    EXPECT_FALSE(leftovers.add_common(folded));
  }
  EXPECT_TRUE(at::equal(folded[0], at::ones({2})));
}

}  // namespace
}  // namespace lockstep::parallel
