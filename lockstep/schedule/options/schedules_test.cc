#include "lockstep/schedule/options/schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::schedule {
namespace {

constexpr RunFacts kFacts{.lr = 0.1, .default_warmup = 20, .epochs = 30, .steps_per_epoch = 10};

LrOptions options_of(const std::string& name) {
  LrOptions options;
  options.schedule = name;
  if (name == "multistep") options.milestones = {100, 200};
  if (name == "exponential") options.gamma = 0.9;
  if (name == "cosine-restarts") options.restart_every = 40;
  return options;
}

TEST(Schedules, EveryNameIsAScheduleThatSaysSo) {
  EXPECT_EQ(schedule_names().size(), std::variant_size_v<Shape>);
  for (const auto name : schedule_names()) {
    const auto schedule = make_schedule(options_of(std::string(name)), kFacts);
    EXPECT_THAT(describe(schedule, "step"), testing::StartsWith(std::string(name)));
  }
  EXPECT_THROW(make_schedule(options_of("cosin"), kFacts), ConfigError);
}

TEST(Schedules, LengthsAreWhatTheWarmupLeaves) {
  EXPECT_EQ(std::get<CosineLr>(make_schedule(options_of("cosine"), kFacts).shape).t_max, 280);
  const auto cycle = make_schedule(options_of("onecycle"), kFacts);
  EXPECT_EQ(cycle.warmup, 0) << "it has its own";
  EXPECT_EQ(std::get<OneCycleLr>(cycle.shape).total_steps, 300);
  EXPECT_EQ(std::get<OneCycleLr>(cycle.shape).max_lr, 0.1);
  EXPECT_EQ(std::get<PolynomialLr>(make_schedule(options_of("polynomial"), kFacts).shape).total_iters, 280);
  LrOptions options = options_of("cosine");
  options.schedule_steps = 100;
  EXPECT_EQ(std::get<CosineLr>(make_schedule(options, kFacts).shape).t_max, 80);
  for (const char* name : {"cosine", "onecycle", "polynomial"}) {
    options = options_of(name);
    options.warmup = 301;
    EXPECT_EQ(testing_support::refusal([&] { make_schedule(options, kFacts); }),
              "--warmup: 301 steps leave nothing to the schedule, which has 300 in all; shorten --warmup, or give more "
              "--epochs");
  }
}

TEST(Schedules, ACycleTakesPyTorchsOptions) {
  LrOptions options = options_of("onecycle");
  const auto cycle = [&](Momentum momentum) {
    RunFacts facts = kFacts;
    facts.momentum = momentum;
    return std::get<OneCycleLr>(make_schedule(options, facts).shape);
  };
  EXPECT_FALSE(cycle(Momentum::kMomentum).momentum) << "unless it is asked for";
  config::OptionSet rows;
  options.declare(rows);
  rows.apply(std::vector<config::GivenOption>{
      {"anneal-strategy", "linear"}, {"three-phase", "on"}, {"cycle-momentum", "on"}, {"base-momentum", "0.7"}});
  EXPECT_EQ(cycle(Momentum::kMomentum).anneal, Anneal::kLinear);
  EXPECT_TRUE(cycle(Momentum::kMomentum).three_phase);
  EXPECT_EQ(cycle(Momentum::kMomentum).momentum->base, 0.7);
  EXPECT_EQ(cycle(Momentum::kMomentum).momentum->most, 0.95);
  EXPECT_TRUE(cycle(Momentum::kBeta1).momentum->beta1);
  EXPECT_THROW(cycle(Momentum::kNone), ConfigError) << "Adagrad has none";
  options.cycle_momentum = false;
  EXPECT_THROW(cycle(Momentum::kMomentum), ConfigError) << "--base-momentum of nothing";
  LrOptions cosine = options_of("cosine");
  cosine.three_phase = false;
  EXPECT_THROW(make_schedule(cosine, kFacts), ConfigError);
}

TEST(Schedules, ByEpochs) {
  LrOptions options = options_of("cosine");
  options.unit = ScheduleUnit::kEpochs;
  EXPECT_EQ(steps_per_unit(options, 10), 10);
  const auto cosine = make_schedule(options, kFacts);
  EXPECT_EQ(cosine.warmup, 2) << "20 steps of the recipe's";
  EXPECT_EQ(std::get<CosineLr>(cosine.shape).t_max, 28);
  options.schedule = "step";
  EXPECT_EQ(std::get<StepLr>(make_schedule(options, kFacts).shape).step_size, 1);
  options.unit = ScheduleUnit::kSteps;
  EXPECT_EQ(std::get<StepLr>(make_schedule(options, kFacts).shape).step_size, 10);
}

TEST(Schedules, MilestonesCountFromTheRunsStart) {
  LrOptions options = options_of("multistep");
  options.warmup = 30;
  const auto schedule = make_schedule(options, kFacts);
  EXPECT_EQ(lr_at(schedule, 99), 0.1);
  EXPECT_DOUBLE_EQ(lr_at(schedule, 100), 0.01);
  options.warmup = 100;
  EXPECT_THROW(make_schedule(options, kFacts), ConfigError);
  options.warmup.reset();
  options.milestones = {5};
  EXPECT_EQ(make_schedule(options, kFacts).warmup, 4) << "the recipe's gives way";
}

// adjust_learning_rate() of Apex's examples/imagenet/main_amp.py: the rate rises by the step and drops by the epoch.
TEST(Schedules, LengthsInEpochsAreThoseOfApexsExample) {
  const auto epochs = [](int64_t count) { return Length(count, ScheduleUnit::kEpochs); };
  LrOptions options = options_of("multistep");
  options.warmup = epochs(5);
  options.milestones = {epochs(30), epochs(60), epochs(80)};
  const RunFacts facts{.lr = 0.4, .lr_factor = 4, .epochs = 90, .steps_per_epoch = 7};
  const auto schedule = make_schedule(options, facts);
  for (int64_t step = 0; step < facts.epochs * facts.steps_per_epoch; ++step) {
    const int64_t epoch = step / facts.steps_per_epoch;
    double apex = facts.lr * std::pow(0.1, static_cast<double>(epoch / 30 + (epoch >= 80 ? 1 : 0)));
    if (epoch < 5) apex *= static_cast<double>(1 + step) / (5.0 * static_cast<double>(facts.steps_per_epoch));
    EXPECT_NEAR(lr_at(schedule, step), apex, 1e-12) << step;
  }
}

TEST(Schedules, ALengthInEpochsIsSoManySteps) {
  const Length two(2, ScheduleUnit::kEpochs), steps(20, ScheduleUnit::kSteps);
  LrOptions options = options_of("step");
  options.step_size = two;
  EXPECT_EQ(std::get<StepLr>(make_schedule(options, kFacts).shape).step_size, 20);
  options.unit = ScheduleUnit::kEpochs;
  EXPECT_EQ(std::get<StepLr>(make_schedule(options, kFacts).shape).step_size, 2);
  options.step_size = steps;
  EXPECT_THROW(make_schedule(options, kFacts), ConfigError) << "it counts epochs";
  options = options_of("cosine-restarts");
  options.restart_every = two;
  options.warmup = steps;
  EXPECT_EQ(std::get<CosineRestartsLr>(make_schedule(options, kFacts).shape).t_0, 20);
  EXPECT_EQ(make_schedule(options, kFacts).warmup, 20);
  options = options_of("multistep");
  options.milestones = {Length(3, ScheduleUnit::kEpochs), 30};
  EXPECT_THROW(make_schedule(options, kFacts), ConfigError) << "one after the other";
}

TEST(Schedules, ALossIsBetterLowerAndAMetricHigher) {
  LrOptions options = options_of("plateau");
  const auto mode = [&] { return std::get<PlateauLr>(make_schedule(options, kFacts).shape).mode; };
  EXPECT_EQ(mode(), PlateauMode::kMin);
  options.plateau_metric = "accuracy";
  EXPECT_EQ(mode(), PlateauMode::kMax);
}

TEST(Schedules, AScaledRateScalesACyclesToo) {
  LrOptions options = options_of("onecycle");
  options.max_lr = 0.5;
  const RunFacts scaled{.lr = 0.4, .lr_factor = 4, .epochs = 30, .steps_per_epoch = 10};
  EXPECT_EQ(std::get<OneCycleLr>(make_schedule(options, scaled).shape).max_lr, 2);
}

}  // namespace
}  // namespace lockstep::schedule
