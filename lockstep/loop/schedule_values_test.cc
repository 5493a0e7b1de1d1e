#include "lockstep/loop/schedule_values.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::loop {
namespace {

using namespace schedule;

std::string between(const ScheduleOptions& was, const ScheduleOptions& is) {
  return difference(to_values(was), to_values(is));
}

TEST(ScheduleValues, NameTheFirstDifference) {
  const ScheduleOptions cosine{.shape = CosineLr{.t_max = 1000}, .base_lr = 0.01};
  EXPECT_EQ(between(cosine, cosine), "");
  ScheduleOptions other = cosine;
  other.shape = CosineLr{.t_max = 2000};
  EXPECT_EQ(between(cosine, other), "t_max was 1000, and is 2000");
  other.shape = StepLr{.step_size = 3};
  EXPECT_EQ(between(cosine, other), "shape was cosine, and is step");
  other = cosine;
  other.base_lr = 0.010000000000000002;
  EXPECT_EQ(between(cosine, other), "base_lr was 0.01, and is 0.010000000000000002");
  other = cosine;
  other.warmup = 5;
  EXPECT_EQ(between(cosine, other), "warmup was 0, and is 5");
  other = cosine;
  other.warmup_start = 0.5;
  EXPECT_EQ(between(cosine, other), "warmup_start was unset, and is 0.5");
  other = cosine;
  other.lr_min = 1e-6;
  EXPECT_EQ(between(cosine, other), "lr_min was 0, and is 1e-06");
}

TEST(ScheduleValues, HaveEveryNumberOfEveryShape) {
  const std::vector<std::pair<Shape, Shape>> unequal = {
      {StepLr{.step_size = 2}, StepLr{.step_size = 3}},
      {StepLr{.gamma = 0.1}, StepLr{.gamma = 0.2}},
      {MultiStepLr{.milestones = {3, 5}}, MultiStepLr{.milestones = {3, 6}}},
      {MultiStepLr{.gamma = 0.1}, MultiStepLr{.gamma = 0.2}},
      {ExponentialLr{.gamma = 0.1}, ExponentialLr{.gamma = 0.2}},
      {CosineRestartsLr{.t_0 = 1}, CosineRestartsLr{.t_0 = 2}},
      {CosineRestartsLr{.t_mult = 1}, CosineRestartsLr{.t_mult = 2}},
      {OneCycleLr{}, OneCycleLr{.max_lr = 0.2}},
      {OneCycleLr{}, OneCycleLr{.total_steps = 2}},
      {OneCycleLr{}, OneCycleLr{.pct_start = 0.4}},
      {OneCycleLr{}, OneCycleLr{.div_factor = 5}},
      {OneCycleLr{}, OneCycleLr{.final_div_factor = 5}},
      {OneCycleLr{}, OneCycleLr{.anneal = Anneal::kLinear}},
      {OneCycleLr{}, OneCycleLr{.three_phase = true}},
      {OneCycleLr{}, OneCycleLr{.momentum = MomentumCycle{}}},
      {OneCycleLr{.momentum = MomentumCycle{}}, OneCycleLr{.momentum = MomentumCycle{.beta1 = true}}},
      {PolynomialLr{.total_iters = 1}, PolynomialLr{.total_iters = 2}},
      {PolynomialLr{.power = 1}, PolynomialLr{.power = 2}},
      {PlateauLr{}, PlateauLr{.mode = PlateauMode::kMax}},
      {PlateauLr{}, PlateauLr{.factor = 0.2}},
      {PlateauLr{}, PlateauLr{.patience = 2}},
      {PlateauLr{}, PlateauLr{.threshold = 0.2}},
      {PlateauLr{}, PlateauLr{.threshold_mode = PlateauThreshold::kAbs}},
      {PlateauLr{}, PlateauLr{.cooldown = 2}},
      {PlateauLr{}, PlateauLr{.eps = 2}},
      {ConstantLr{}, PlateauLr{}}};
  for (size_t i = 0; i < unequal.size(); ++i) {
    const auto& [one, other] = unequal[i];
    EXPECT_NE(between({.shape = one}, {.shape = other}), "") << i;
    EXPECT_EQ(between({.shape = one}, {.shape = one}), "") << i;
  }
}

}  // namespace
}  // namespace lockstep::loop
