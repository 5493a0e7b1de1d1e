#include "lockstep/predict/sample_scores.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/base/error.h"

namespace lockstep::predict {
namespace {

using ::testing::ElementsAre;

TEST(SampleScores, AreTheTrueClassesProbabilities) {
  SampleScores scores;
  const double third = std::log(0.5);  // beside 0: a third and two thirds
  scores.add(at::tensor({0.0, third, third, 0.0}).reshape({2, 2}), at::tensor({0, 0}, at::kLong));
  scores.add(at::tensor({third}).reshape({1, 1}), at::tensor({1}, at::kLong));
  ASSERT_EQ(scores.all().size(), 3U);
  EXPECT_NEAR(scores.all()[0], 2.0 / 3, 1e-12);
  EXPECT_NEAR(scores.all()[1], 1.0 / 3, 1e-12);
  EXPECT_NEAR(scores.all()[2], 1.0 / 3, 1e-12) << "of a sigmoid";
}

TEST(SampleScores, OfMasksAreTheirMeanDice) {
  const at::Tensor target = at::tensor({0, 1, 1, 2, 0, 0, 0, 0}, at::kLong).reshape({2, 2, 2});
  const at::Tensor predicted = at::tensor({0, 1, 0, 2, 0, 0, 0, 0}, at::kLong).reshape({2, 2, 2});
  at::Tensor scores = at::one_hot(predicted, 3).permute({0, 3, 1, 2}).to(at::kFloat).clone();
  SampleScores of;
  of.add(scores, target);
  EXPECT_THAT(of.all(), ElementsAre((2.0 / 3 + 1) / 2, 1.0)) << "classes that are nowhere were found everywhere";
  scores[0][0][0][0] = std::numeric_limits<float>::quiet_NaN();
  SampleScores none;
  none.add(scores, target);
  EXPECT_TRUE(std::isnan(none.all()[0]));
  EXPECT_EQ(none.all()[1], 1);
}

TEST(SampleScores, OfOtherOutputsAreRefused) {
  SampleScores scores;
  EXPECT_THROW(scores.add(at::zeros({4, 3}), at::zeros({4})), ConfigError) << "a regression's";
  EXPECT_THROW(scores.add(at::zeros({4}), at::zeros({4}, at::kLong)), ConfigError);
}

TEST(WorstSamples, AreTheLowestScoresAndThenTheFirst) {
  const double nan = std::nan("");
  const std::vector<RankedSample> all = {{0, 0.5}, {1, 0.2}, {2, 0.5}, {3, nan}, {4, 0.1}};
  const auto worst = worst_of(all, 4);
  ASSERT_EQ(worst.size(), 4U);
  EXPECT_EQ(worst[0].index, 3) << "no number";
  EXPECT_THAT(std::vector(worst.begin() + 1, worst.end()),
              ElementsAre(RankedSample{4, 0.1}, RankedSample{1, 0.2}, RankedSample{0, 0.5}));
  EXPECT_EQ(worst_of(all, 9).size(), 5U);
}

TEST(WorstSamples, AreNumberedAroundThoseThatAreLeftOut) {
  const std::vector<int64_t> left_out = {1, 4, 5, 9};
  EXPECT_THAT(ranked({0.1, 0.2, 0.3}, 3, left_out),
              ElementsAre(RankedSample{3, 0.1}, RankedSample{6, 0.2}, RankedSample{7, 0.3}));
  EXPECT_THAT(ranked({0.1}, 4, left_out), ElementsAre(RankedSample{6, 0.1}));
  EXPECT_TRUE(ranked({}, 0, left_out).empty());
}

}  // namespace
}  // namespace lockstep::predict
