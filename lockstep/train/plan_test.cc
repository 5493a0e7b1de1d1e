#include "lockstep/train/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"

namespace lockstep::train {
namespace {

const Defaults kDefaults = {
    .batch_size = 32, .epochs = 5, .lr = 0.1, .momentum = 0.9, .schedule = "cosine", .warmup = 100};

TEST(Plan, TakesTheRecipesDefaults) {
  const Plan plan = make_plan({}, kDefaults, 2, 7000);
  EXPECT_EQ(plan.global_batch(), 64);
  EXPECT_EQ(plan.steps_per_epoch, 110);  // the ragged last batch counts
  EXPECT_EQ(plan.total_steps, 550);
  EXPECT_EQ(std::get<schedule::CosineLr>(plan.schedule.shape).t_max, 550 - 100);
  EXPECT_EQ(plan.schedule.warmup, 100);
  EXPECT_EQ(plan.eval_every, 110);
  EXPECT_EQ(plan.epoch_of(110), 1);
  EXPECT_EQ(plan.step_in_epoch(111), 1);
}

TEST(Plan, TheRaggedLastBatchMayBeLeftOut) {
  TrainOptions options;
  options.data.drop_last = true;
  EXPECT_EQ(make_plan(options, kDefaults, 2, 7000).steps_per_epoch, 109);
  EXPECT_EQ(make_plan(options, kDefaults, 2, 64).steps_per_epoch, 1);
  EXPECT_EQ(testing_support::refusal([&] { make_plan(options, kDefaults, 2, 63); }),
            "--drop-last: the 63 samples are fewer than a global batch of 64, so no step is left; lower --batch-size");
}

TEST(Plan, StepsOnlyStop) {
  TrainOptions options;
  options.steps = 37;
  const Plan plan = make_plan(options, kDefaults, 2, 7000);
  EXPECT_EQ(plan.total_steps, 37);
  EXPECT_EQ(std::get<schedule::CosineLr>(plan.schedule.shape).t_max, 550 - 100);
  options.epochs = 1;
  options.steps = 1000;
  EXPECT_EQ(make_plan(options, kDefaults, 2, 7000).total_steps, 110);
}

TEST(Plan, MoreStepsThanTheRecipesEpochs) {
  TrainOptions options;
  options.steps = 1000;
  const Plan plan = make_plan(options, kDefaults, 2, 7000);
  EXPECT_EQ(plan.total_steps, 1000);
  EXPECT_EQ(plan.epochs, 10);
}

TEST(Plan, AGlobalBatchIsShared) {
  TrainOptions options;
  options.global_batch_size = 100;
  EXPECT_EQ(make_plan(options, kDefaults, 4, 7000).batch_size, 25);
  EXPECT_THROW(make_plan(options, kDefaults, 3, 7000), ConfigError);
}

TEST(Plan, TheRateIsScaledOnlyWhereItIsAsked) {
  TrainOptions options;
  EXPECT_EQ(make_plan(options, kDefaults, 8, 7000).schedule.base_lr, 0.1);
  EXPECT_FALSE(make_plan(options, kDefaults, 8, 7000).lr_scaling);
  options.rate.scale_lr = schedule::LrScale{schedule::LrRule::kLinear, {}};
  const Plan plan = make_plan(options, kDefaults, 8, 7000);  // 256 samples, 8 times the recipe's 32
  EXPECT_EQ(plan.schedule.base_lr, 0.8);
  EXPECT_EQ(std::get<double>(plan.optimizer_options[0].value), 0.8);
  EXPECT_EQ(plan.lr_scaling->factor, 8);
  EXPECT_EQ(plan.lr_scaling->base_batch, 32);
  options.rate.scale_lr = schedule::LrScale{schedule::LrRule::kSqrt, 64};
  options.rate.lr = 0.5;
  EXPECT_EQ(make_plan(options, kDefaults, 8, 7000).schedule.base_lr, 1);
}

TEST(Plan, ARateThatWasScaledUpIsWarmedUpTo) {
  Defaults defaults = kDefaults;
  defaults.warmup = 0;
  TrainOptions options;
  options.rate.scale_lr = schedule::LrScale{schedule::LrRule::kLinear, {}};
  const Plan plan = make_plan(options, defaults, 8, 7000);  // 5 epochs of 28 steps
  EXPECT_EQ(plan.schedule.warmup, 14);
  EXPECT_EQ(schedule::lr_at(plan.schedule, 0), 0.1);
  options.epochs = 100;
  EXPECT_EQ(make_plan(options, defaults, 8, 7000).schedule.warmup, 5 * 28);
  EXPECT_EQ(make_plan(options, defaults, 1, 7000).schedule.warmup, 0);  // not scaled up
  options.rate.warmup = 3;
  EXPECT_EQ(make_plan(options, defaults, 8, 7000).schedule.warmup, 3);
  EXPECT_FALSE(make_plan(options, defaults, 8, 7000).schedule.warmup_start);
}

TEST(Plan, MomentumBelongsToSgd) {
  TrainOptions options;
  options.optimizer.name = "adam";
  EXPECT_EQ(make_plan(options, kDefaults, 1, 100).optimizer, "adam");
  options.optimizer.momentum = 0.9;
  EXPECT_THROW(make_plan(options, kDefaults, 1, 100), ConfigError);
}

TEST(Plan, GroupsKeepTheirRatios) {
  TrainOptions options;
  options.rate.lr = 0.2;
  options.optimizer.decay_all = false;
  options.optimizer.param_groups = {{"encoder.*", {{"lr", "0.05"}, {"weight_decay", "0"}}},
                                    {"*.bias", {{"nesterov", "true"}}}};
  const auto plan = make_plan(options, Defaults{}, 1, 100);
  EXPECT_FALSE(plan.grouping.decay_all);
  ASSERT_EQ(plan.grouping.rules.size(), 2u);
  EXPECT_EQ(plan.grouping.rules[0].match, "encoder.*");
  EXPECT_EQ(plan.grouping.rules[0].options[0].name, "lr_scale");
  EXPECT_EQ(std::get<double>(plan.grouping.rules[0].options[0].value), 0.05 / 0.2);
  EXPECT_EQ(std::get<int64_t>(plan.grouping.rules[0].options[1].value), 0);
  EXPECT_TRUE(std::get<bool>(plan.grouping.rules[1].options[0].value));
  options.rate.lr = 0;
  EXPECT_THROW(make_plan(options, Defaults{}, 1, 100), ConfigError) << "no ratio to 0";
  options.rate.lr = 0.2;
  options.optimizer.param_groups[0].settings[0].second = "fast";
  EXPECT_THROW(make_plan(options, Defaults{}, 1, 100), ConfigError);
}

TEST(Plan, EpochsAreCountedFromTheFirst) {
  TrainOptions options;
  options.first_epoch = 7;
  const Plan plan = make_plan(options, kDefaults, 2, 7000), usual = make_plan({}, kDefaults, 2, 7000);
  EXPECT_EQ(usual.epoch_of(0), 0);
  EXPECT_EQ(plan.epoch_of(0), 6);
  EXPECT_EQ(plan.epoch_of(plan.steps_per_epoch), 7);
  EXPECT_EQ(plan.total_steps, usual.total_steps) << "the epochs that are asked for are additional";
}

TEST(Plan, IntervalsAreStepsOrEpochs) {
  TrainOptions options;
  options.eval_every = Interval{2, Interval::Unit::kEpochs};
  options.save_every = Interval{7, Interval::Unit::kSteps};
  const Plan plan = make_plan(options, kDefaults, 2, 7000);
  EXPECT_EQ(plan.eval_every, 220);
  EXPECT_EQ(plan.save_every, 7);
  options.eval_every = Interval{5, Interval::Unit::kPerEpoch};
  EXPECT_EQ(make_plan(options, kDefaults, 2, 7000).eval_every, 22);
  options.eval_every = Interval{1000, Interval::Unit::kPerEpoch};
  EXPECT_EQ(make_plan(options, kDefaults, 2, 7000).eval_every, 1) << "more often than each step it can't be";
}

TEST(Plan, DefaultsFillWhatIsNotSaid) {
  TrainOptions options;
  options.global_batch_size = 64;
  options.rate.scale_lr = schedule::LrScale{schedule::LrRule::kLinear, {}};
  const TrainOptions filled = fill_defaults(options, kDefaults, 4);
  EXPECT_EQ(filled.batch_size, 16);
  EXPECT_FALSE(filled.global_batch_size);
  EXPECT_EQ(filled.parallel.lanes, 4);
  EXPECT_EQ(filled.rate.lr, 0.1);
  EXPECT_EQ(filled.rate.schedule, "cosine");
  EXPECT_EQ(filled.rate.scale_lr->base, 32);
  EXPECT_EQ(filled.optimizer.name, "sgd");
  EXPECT_EQ(filled.optimizer.momentum, 0.9);
  EXPECT_EQ(filled.channels_last, ChannelsLast::kOff);
  options.optimizer.name = "adam";
  EXPECT_FALSE(fill_defaults(options, kDefaults, 4).optimizer.momentum) << "the recipe's goes with its own optimizer";
}

TEST(Plan, ResolvedOptionsMakeTheSamePlan) {
  TrainOptions options;
  options.steps = 1000;  // more than the recipe's epochs
  options.global_batch_size = 64;
  const Plan plan = make_plan(options, kDefaults, 2, 7000);
  const TrainOptions resolved = resolve_options(options, kDefaults, plan);
  EXPECT_EQ(resolved.epochs, 10);
  EXPECT_EQ(resolved.rate.warmup, 100);
  EXPECT_EQ(write_interval(*resolved.eval_every), "1epochs");
  const Defaults others = {.batch_size = 1, .epochs = 1, .lr = 9, .optimizer = "adam", .schedule = "step"};
  const Plan again = make_plan(resolved, others, 2, 7000);
  EXPECT_EQ(again.total_steps, plan.total_steps);
  EXPECT_EQ(again.batch_size, plan.batch_size);
  EXPECT_EQ(again.optimizer, plan.optimizer);
  EXPECT_EQ(again.eval_every, plan.eval_every);
  for (const int64_t step : {0, 50, 100, 400, 999}) {
    EXPECT_EQ(schedule::lr_at(again.schedule, step), schedule::lr_at(plan.schedule, step)) << step;
  }
}

TEST(Plan, ResolvedOptionsKeepTheWarmUpOfAScaledRate) {
  TrainOptions options;
  options.rate.scale_lr = schedule::LrScale{schedule::LrRule::kLinear, {}};
  const Plan plan = make_plan(options, kDefaults, 8, 7000);
  const Plan again = make_plan(resolve_options(options, kDefaults, plan), kDefaults, 8, 7000);
  for (const int64_t step : {0, 5, 139}) {
    EXPECT_EQ(schedule::lr_at(again.schedule, step), schedule::lr_at(plan.schedule, step)) << step;
  }
}

TEST(Plan, StepsMayAskForMoreThanTheResumedRunsEpochs) {
  TrainOptions options;
  options.steps = 1000;
  options.epochs = 5;
  EXPECT_EQ(make_plan(options, kDefaults, 2, 7000).total_steps, 550);
  options.epochs_recalled = true;
  EXPECT_EQ(make_plan(options, kDefaults, 2, 7000).total_steps, 1000);
}

TEST(Plan, OptionsOfTheRecipesOwnScheduleAreChecked) {
  TrainOptions options;
  options.rate.gamma = 0.5;
  EXPECT_THAT(testing_support::refusal([&] { make_plan(options, kDefaults, 1, 7000); }),
              testing::HasSubstr("this run's is cosine"));
}

}  // namespace
}  // namespace lockstep::train
