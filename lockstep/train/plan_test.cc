#include "lockstep/train/plan.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

const Defaults kDefaults = {.batch_size = 32,
                            .epochs = 5,
                            .lr = 0.1,
                            .momentum = 0.9,
                            .schedule = config::ScheduleKind::kCosine,
                            .warmup = 100};

TEST(Plan, TakesTheRecipesDefaults) {
  const Plan plan = make_plan({}, kDefaults, 2, 7000);
  EXPECT_EQ(plan.global_batch(), 64);
  EXPECT_EQ(plan.steps_per_epoch, 110);  // the ragged last batch counts
  EXPECT_EQ(plan.total_steps, 550);
  EXPECT_EQ(plan.schedule.horizon_steps, 550);
  EXPECT_EQ(plan.schedule.warmup_steps, 100);
  EXPECT_EQ(plan.eval_every, 110);
  EXPECT_EQ(plan.epoch_of(110), 1);
  EXPECT_EQ(plan.step_in_epoch(111), 1);
}

TEST(Plan, StepsOnlyStop) {
  config::TrainOptions options;
  options.steps = 37;
  const Plan plan = make_plan(options, kDefaults, 2, 7000);
  EXPECT_EQ(plan.total_steps, 37);
  EXPECT_EQ(plan.schedule.horizon_steps, 550);
  options.epochs = 1;
  options.steps = 1000;
  EXPECT_EQ(make_plan(options, kDefaults, 2, 7000).total_steps, 110);
}

TEST(Plan, MoreStepsThanTheRecipesEpochs) {
  config::TrainOptions options;
  options.steps = 1000;
  const Plan plan = make_plan(options, kDefaults, 2, 7000);
  EXPECT_EQ(plan.total_steps, 1000);
  EXPECT_EQ(plan.epochs, 10);
}

TEST(Plan, AGlobalBatchIsShared) {
  config::TrainOptions options;
  options.global_batch_size = 100;
  EXPECT_EQ(make_plan(options, kDefaults, 4, 7000).batch_size, 25);
  EXPECT_THROW(make_plan(options, kDefaults, 3, 7000), ConfigError);
}

TEST(Plan, MomentumBelongsToSgd) {
  config::TrainOptions options;
  options.optimizer = config::OptimizerKind::kAdam;
  EXPECT_EQ(make_plan(options, kDefaults, 1, 100).optimizer, "adam");
  options.momentum = 0.9;
  EXPECT_THROW(make_plan(options, kDefaults, 1, 100), ConfigError);
}

TEST(Plan, IntervalsAreStepsOrEpochs) {
  config::TrainOptions options;
  options.eval_every = config::Interval{2, config::Interval::Unit::kEpochs};
  options.save_every = config::Interval{7, config::Interval::Unit::kSteps};
  const Plan plan = make_plan(options, kDefaults, 2, 7000);
  EXPECT_EQ(plan.eval_every, 220);
  EXPECT_EQ(plan.save_every, 7);
}

}  // namespace
}  // namespace lockstep::train
