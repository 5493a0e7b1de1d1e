#include "lockstep/recipes/dice.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::recipes {
namespace {

const at::Tensor kMask = at::tensor({1, 1, 0, 0, /**/ 0, 0, 1, 1, /**/ 0, 0, 0, 0, /**/ 1, 1, 1, 1})
                             .to(at::kFloat)
                             .reshape({2, 2, 2, 2});  // two images of two classes

TEST(Dice, IsWholeForTheMaskItself) {
  EXPECT_EQ(dice_loss(kMask, kMask).item<float>(), 0);
  EXPECT_EQ(joint_dice_loss(kMask, kMask).item<float>(), 0);
  EXPECT_EQ(dice_counts(kMask, kMask), (std::vector<double>{4, 4, 12, 12}));
  EXPECT_EQ(dice_of_images(kMask, kMask), (std::vector<double>{2, 2})) << "a class that is nowhere was found";
}

TEST(Dice, OfNothingIsWholeAndOfNothingFoundNone) {
  const at::Tensor nothing = at::zeros_like(kMask);
  EXPECT_EQ(joint_dice_loss(nothing, nothing).item<float>(), 0);
  EXPECT_NEAR(joint_dice_loss(nothing, kMask).item<float>(), 1, 1e-6);
  const auto sums = dice_of_images(nothing, kMask);
  EXPECT_NEAR(sums[0], 1, 1e-6) << "of the second image";
  EXPECT_NEAR(sums[1], 0, 1e-6);
}

// So that sums do not depend on who adds them.
TEST(Dice, OfImagesIsAddedExactly) {
  const at::Tensor predicted = at::rand({9, 3, 7, 5}).gt(0.4).to(at::kFloat);
  const at::Tensor mask = at::rand({9, 3, 7, 5}).gt(0.6).to(at::kFloat);
  const auto together = dice_of_images(predicted, mask);
  std::vector<double> backwards(3, 0);
  for (int64_t k = 9; k-- > 0;) {
    const auto one = dice_of_images(predicted.slice(0, k, k + 1), mask.slice(0, k, k + 1));
    for (size_t label = 0; label < 3; ++label) backwards[label] += one[label];
  }
  EXPECT_EQ(together, backwards);
}

}  // namespace
}  // namespace lockstep::recipes
