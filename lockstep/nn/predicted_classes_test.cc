#include "lockstep/nn/predicted_classes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::nn {
namespace {

TEST(PredictedClasses, AreThoseOfTheHighestScores) {
  const at::Tensor scores = at::tensor({1.0f, 0.0f, 0.5f, 2.0f, 0.5f, 2.0f}).reshape({3, 2});
  EXPECT_TRUE(predicted_classes(scores, 0).equal(at::tensor({0, 1}, at::kLong))) << "of equal ones the first";
  EXPECT_TRUE(predicted_classes(scores.t().unsqueeze(2), 1).equal(at::tensor({0, 1}, at::kLong).unsqueeze(1)));
}

TEST(PredictedClasses, OfOneScoreAreThoseOfItsSigmoid) {
  const at::Tensor scores = at::tensor({-1.0f, 2.0f, 0.0f, 0.5f}).reshape({1, 1, 2, 2}).to(at::kBFloat16);
  EXPECT_TRUE(predicted_classes(scores, 1).equal(at::tensor({0, 1, 0, 1}, at::kLong).reshape({1, 2, 2})));
  EXPECT_TRUE(is_sigmoid(1));
  EXPECT_EQ(classes_of_outputs(1), 2);
  EXPECT_EQ(classes_of_outputs(5), 5);
}

TEST(PredictedClasses, HaveProbabilitiesThatAddUpToOne) {
  const at::Tensor two = class_probabilities(at::tensor({0.0f, 3.0f}).reshape({1, 2}), 1);
  const at::Tensor one = class_probabilities(at::tensor({3.0f}).reshape({1, 1}), 1);
  EXPECT_TRUE(at::allclose(one, two)) << "a sigmoid is a softmax over 0 and its score";
  EXPECT_EQ(one.scalar_type(), at::kDouble);
  EXPECT_NEAR(one.sum().item<double>(), 1, 1e-15);
}

}  // namespace
}  // namespace lockstep::nn
