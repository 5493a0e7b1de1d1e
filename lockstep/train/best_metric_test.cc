#include "lockstep/train/best_metric.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/train/testing/tiny_recipe.h"

namespace lockstep::train {
namespace {

struct ByLoss : testing_support::TinyRecipe {
  std::string best_by() const override { return "loss"; }
};
struct ByError : testing_support::TinyRecipe {
  std::string best_by() const override { return "error"; }
  bool lower_is_better() const override { return true; }
};

const Evaluation kSeen{.loss = 0.5, .samples = 10, .metrics = {{"accuracy", 0.75}, {"error", 2}, {"note", "none"}}};

TEST(BestMetric, MoreIsBetterUnlessTheRecipeSaysOtherwise) {
  const BestMetric metric{testing_support::TinyRecipe()};
  EXPECT_EQ(metric.in(kSeen), 0.75);
  EXPECT_TRUE(metric.is_better(0.75, metric.worst()));
  EXPECT_TRUE(metric.is_better(0.75, 0.5));
  EXPECT_FALSE(metric.is_better(0.5, 0.5));
  EXPECT_FALSE(metric.is_better(NAN, metric.worst()));
  const BestMetric lower{ByError()};
  EXPECT_EQ(lower.in(kSeen), 2);
  EXPECT_TRUE(lower.is_better(2, lower.worst()));
  EXPECT_TRUE(lower.is_better(0.5, 0.75));
  EXPECT_FALSE(lower.is_better(0.75, 0.5));
  EXPECT_FALSE(lower.is_better(NAN, lower.worst()));
}

TEST(BestMetric, MayBeTheLossOfWhichLessIsBetter) {
  const BestMetric metric{ByLoss()};
  EXPECT_TRUE(metric.is_in(kSeen));
  EXPECT_EQ(metric.in(kSeen), 0.5);
  EXPECT_TRUE(metric.lower_is_better);
}

TEST(BestMetric, IsANumberOfTheEvaluation) {
  EXPECT_TRUE(BestMetric(testing_support::TinyRecipe()).is_in(kSeen));
  EXPECT_FALSE(BestMetric(testing_support::TinyRecipe()).is_in({.metrics = {{"error", 2}}}));
  EXPECT_FALSE(BestMetric(testing_support::TinyRecipe()).is_in({.metrics = {{"accuracy", "high"}}}));
}

}  // namespace
}  // namespace lockstep::train
