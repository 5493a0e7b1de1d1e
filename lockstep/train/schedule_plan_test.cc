#include "lockstep/train/schedule_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

using config::TrainOptions;
using Kind = config::ScheduleKind;

const Defaults kDefaults{.schedule = Kind::kCosine, .warmup = 20};
constexpr ScheduleFacts kFacts{.lr = 0.1, .epochs = 30, .steps_per_epoch = 10};

TrainOptions options_of(Kind kind) {
  TrainOptions options;
  options.schedule = kind;
  if (kind == Kind::kMultiStep) options.milestones = {100, 200};
  if (kind == Kind::kExponential) options.gamma = 0.9;
  if (kind == Kind::kCosineRestarts) options.restart_every = 40;
  return options;
}

TEST(SchedulePlan, EveryWordIsASchedule) {
  const auto words = config::words(Kind{});
  EXPECT_EQ(words.size(), std::variant_size_v<schedule::Shape>);
  for (size_t i = 0; i < words.size(); ++i) {
    const auto schedule = schedule_of(options_of(static_cast<Kind>(i)), kDefaults, kFacts);
    EXPECT_EQ(schedule.shape.index(), i);
    EXPECT_THAT(schedule::describe(schedule, "step"), testing::StartsWith(std::string(words[i])));
  }
}

TEST(SchedulePlan, LengthsAreWhatTheWarmupLeaves) {
  EXPECT_EQ(std::get<schedule::CosineLr>(schedule_of({}, kDefaults, kFacts).shape).t_max, 280);
  const auto cycle = schedule_of(options_of(Kind::kOneCycle), kDefaults, kFacts);
  EXPECT_EQ(cycle.warmup, 0) << "it has its own";
  EXPECT_EQ(std::get<schedule::OneCycleLr>(cycle.shape).total_steps, 300);
  EXPECT_EQ(std::get<schedule::OneCycleLr>(cycle.shape).max_lr, 0.1);
  EXPECT_EQ(
      std::get<schedule::PolynomialLr>(schedule_of(options_of(Kind::kPolynomial), kDefaults, kFacts).shape).total_iters,
      280);
  TrainOptions options;
  options.schedule_steps = 100;
  EXPECT_EQ(std::get<schedule::CosineLr>(schedule_of(options, kDefaults, kFacts).shape).t_max, 80);
  for (const Kind kind : {Kind::kCosine, Kind::kOneCycle, Kind::kPolynomial}) {
    options = options_of(kind);
    options.warmup = 301;
    EXPECT_THROW(schedule_of(options, kDefaults, kFacts), ConfigError);
  }
}

TEST(SchedulePlan, ByEpochs) {
  TrainOptions options;
  options.schedule_unit = config::ScheduleUnit::kEpochs;
  EXPECT_EQ(steps_per_unit(options, 10), 10);
  const auto cosine = schedule_of(options, kDefaults, kFacts);
  EXPECT_EQ(cosine.warmup, 2) << "20 steps of the recipe's";
  EXPECT_EQ(std::get<schedule::CosineLr>(cosine.shape).t_max, 28);
  options.schedule = Kind::kStep;
  EXPECT_EQ(std::get<schedule::StepLr>(schedule_of(options, kDefaults, kFacts).shape).step_size, 1);
  options.schedule_unit = config::ScheduleUnit::kSteps;
  EXPECT_EQ(std::get<schedule::StepLr>(schedule_of(options, kDefaults, kFacts).shape).step_size, 10);
}

TEST(SchedulePlan, MilestonesCountFromTheRunsStart) {
  TrainOptions options = options_of(Kind::kMultiStep);
  options.warmup = 30;
  const auto schedule = schedule_of(options, kDefaults, kFacts);
  EXPECT_EQ(schedule::lr_at(schedule, 99), 0.1);
  EXPECT_DOUBLE_EQ(schedule::lr_at(schedule, 100), 0.01);
  options.warmup = 100;
  EXPECT_THROW(schedule_of(options, kDefaults, kFacts), ConfigError);
  options.warmup.reset();
  options.milestones = {5};
  EXPECT_EQ(schedule_of(options, kDefaults, kFacts).warmup, 4) << "the recipe's gives way";
}

TEST(SchedulePlan, OptionsOfTheRecipesOwnScheduleAreChecked) {
  TrainOptions options;
  options.gamma = 0.5;
  try {
    schedule_of(options, kDefaults, kFacts);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("this run's is cosine"));
  }
}

TEST(SchedulePlan, ALossIsBetterLowerAndAMetricHigher) {
  TrainOptions options = options_of(Kind::kPlateau);
  const auto mode = [&] { return std::get<schedule::PlateauLr>(schedule_of(options, kDefaults, kFacts).shape).mode; };
  EXPECT_EQ(mode(), schedule::PlateauMode::kMin);
  options.plateau_metric = "accuracy";
  EXPECT_EQ(mode(), schedule::PlateauMode::kMax);
}

TEST(SchedulePlan, AScaledRateScalesACyclesToo) {
  TrainOptions options = options_of(Kind::kOneCycle);
  options.max_lr = 0.5;
  const ScheduleFacts scaled{.lr = 0.4, .lr_factor = 4, .epochs = 30, .steps_per_epoch = 10};
  EXPECT_EQ(std::get<schedule::OneCycleLr>(schedule_of(options, kDefaults, scaled).shape).max_lr, 2);
}

}  // namespace
}  // namespace lockstep::train
