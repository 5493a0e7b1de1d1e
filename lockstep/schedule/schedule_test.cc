#include "lockstep/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "lockstep/base/error.h"

namespace lockstep::schedule {
namespace {

const ScheduleOptions kStep{.shape = StepLr{.step_size = 15, .gamma = 0.1}, .base_lr = 0.1};
const ScheduleOptions kMultiStep{.shape = MultiStepLr{.milestones = {10, 25, 50}, .gamma = 0.5}, .base_lr = 0.1};
const ScheduleOptions kExponential{.shape = ExponentialLr{.gamma = 0.95}, .base_lr = 0.1};
const ScheduleOptions kCosine{.shape = CosineLr{.t_max = 60}, .base_lr = 0.1, .lr_min = 1e-7};
const ScheduleOptions kRestarts{.shape = CosineRestartsLr{.t_0 = 10, .t_mult = 2}, .base_lr = 0.1, .lr_min = 0.001};
const ScheduleOptions kPolynomial{.shape = PolynomialLr{.total_iters = 40, .power = 2}, .base_lr = 0.1};
const ScheduleOptions kOneCycle{.shape = OneCycleLr{.max_lr = 0.5, .total_steps = 61}, .base_lr = 0.1};
const ScheduleOptions kWarmCosine{.shape = CosineLr{.t_max = 52}, .base_lr = 0.1, .warmup = 8, .warmup_start = 0.1};
const ScheduleOptions kPlateau{.shape = PlateauLr{.factor = 0.5, .patience = 3}, .base_lr = 0.1};

const ScheduleOptions kAll[] = {ScheduleOptions{.base_lr = 0.1},
                                kStep,
                                kMultiStep,
                                kExponential,
                                kCosine,
                                kRestarts,
                                kOneCycle,
                                kPolynomial,
                                kPlateau};
static_assert(std::size(kAll) == std::variant_size_v<Shape>);

nlohmann::json record() {
  return nlohmann::json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/fixtures/golden/schedules.json"));
}

TEST(Schedule, FollowsPyTorchsRecord) {
  const auto recorded = record();
  const std::pair<const char*, ScheduleOptions> pairs[] = {
      {"StepLR(step_size=15,gamma=0.1)", kStep},
      {"MultiStepLR(milestones=[10,25,50],gamma=0.5)", kMultiStep},
      {"ExponentialLR(gamma=0.95)", kExponential},
      {"CosineAnnealingLR(T_max=60,eta_min=1e-7)", kCosine},
      {"CosineAnnealingWarmRestarts(T_0=10,T_mult=2,eta_min=0.001)", kRestarts},
      {"PolynomialLR(total_iters=40,power=2.0)", kPolynomial},
      {"LinearLR(start_factor=0.1,total_iters=8)+CosineAnnealingLR(T_max=52)", kWarmCosine},
      {"OneCycleLR(max_lr=0.5,total_steps=61)", kOneCycle}};
  EXPECT_EQ(recorded["schedules"].size(), std::size(pairs));
  for (const auto& [name, options] : pairs) {
    const auto& rates = recorded["schedules"].at(name);
    ASSERT_EQ(rates.size(), 60u);
    for (int64_t step = 0; step < 60; ++step) {
      // PyTorch multiplies on from the rate before, and so drifts from its own closed form by a few roundings of 0.1.
      const double theirs = rates[static_cast<size_t>(step)];
      EXPECT_NEAR(lr_at(options, step), theirs, 1e-15 * 0.1) << name << " " << step;
    }
  }
}

// tests/fixtures/record_one_cycle.py wrote it.
TEST(Schedule, ACycleHasPyTorchsOptions) {
  std::ifstream file(LOCKSTEP_SOURCE_DIR "/tests/fixtures/one_cycle.json");
  const auto recorded = nlohmann::json::parse(file);
  ASSERT_GE(recorded["cases"].size(), 4u);
  for (const auto& each : recorded["cases"]) {
    const auto& o = each["options"];
    OneCycleLr cycle{.max_lr = o["max_lr"], .total_steps = o["total_steps"]};
    cycle.pct_start = o.value("pct_start", cycle.pct_start);
    cycle.div_factor = o.value("div_factor", cycle.div_factor);
    cycle.final_div_factor = o.value("final_div_factor", cycle.final_div_factor);
    cycle.anneal = o.value("anneal_strategy", "cos") == "linear" ? Anneal::kLinear : Anneal::kCos;
    cycle.three_phase = o.value("three_phase", false);
    MomentumCycle& momentum = cycle.momentum.emplace();
    momentum.base = o.value("base_momentum", momentum.base);
    momentum.most = o.value("max_momentum", momentum.most);
    const ScheduleOptions options{.shape = cycle, .base_lr = 0.1};
    options.check();
    ASSERT_EQ(each["lr"].size(), static_cast<size_t>(cycle.total_steps));
    for (size_t step = 0; step < each["lr"].size(); ++step) {
      EXPECT_NEAR(lr_at(options, static_cast<int64_t>(step)), each["lr"][step].get<double>(), 1e-15) << o << step;
      EXPECT_NEAR(momentum_at(options, static_cast<int64_t>(step)).value(), each["momentum"][step].get<double>(), 1e-15)
          << o << step;
    }
  }
}

TEST(Schedule, MomentumIsACyclesAlone) {
  EXPECT_FALSE(momentum_at(kOneCycle, 3));
  EXPECT_FALSE(momentum_at(kCosine, 3));
  OneCycleLr cycle{.max_lr = 0.5, .total_steps = 61, .momentum = MomentumCycle{}};
  const ScheduleOptions warm{.shape = cycle, .base_lr = 0.1, .warmup = 8};
  EXPECT_EQ(momentum_at(warm, 0), 0.95) << "during the warm-up";
  EXPECT_EQ(momentum_at(warm, 8), 0.95);
  EXPECT_LT(momentum_at(warm, 20), 0.95);
  EXPECT_EQ(momentum_at(warm, 1000), 0.95);
  EXPECT_EQ(describe({.shape = cycle}, "step"), "onecycle to 0.5, done after 61 steps, momentum 0.95 to 0.85 and back");
  cycle.momentum->base = 0.96;
  EXPECT_THROW((ScheduleOptions{.shape = cycle}).check(), ConfigError);
  cycle.momentum.reset();
  cycle.three_phase = true;
  cycle.pct_start = 0.6;
  EXPECT_THROW((ScheduleOptions{.shape = cycle}).check(), ConfigError);
}

TEST(Schedule, FollowsPyTorchsRecordOfAPlateau) {
  const auto recorded = record();
  const auto& [metrics, rates] = std::pair(recorded["plateau"]["metric"], recorded["plateau"]["lr"]);
  ASSERT_EQ(metrics.size(), 60u);
  PlateauState state;
  for (size_t i = 0; i < metrics.size(); ++i) {
    EXPECT_EQ(lr_at(kPlateau, static_cast<int64_t>(i), state), rates[i].get<double>()) << i;
    state = next(std::get<PlateauLr>(kPlateau.shape), kPlateau.rates(), state, metrics[i]);
  }
}

// The same ground without the record.
TEST(Schedule, HasTheValuesOfItsForms) {
  const std::tuple<ScheduleOptions, int64_t, double> table[] = {{{.base_lr = 0.3}, 12345, 0.3},
                                                                {kStep, 14, 0.1},
                                                                {kStep, 15, 0.01},
                                                                {kStep, 45, 0.0001},
                                                                {kMultiStep, 9, 0.1},
                                                                {kMultiStep, 10, 0.05},
                                                                {kMultiStep, 24, 0.05},
                                                                {kMultiStep, 25, 0.025},
                                                                {kMultiStep, 50, 0.0125},
                                                                {kExponential, 0, 0.1},
                                                                {kExponential, 3, 0.0857375},
                                                                {kExponential, 59, 0.1 * std::pow(0.95, 59)},
                                                                {kCosine, 0, 0.1},
                                                                {kCosine, 1, 0.09993147680625196},
                                                                {kCosine, 30, (0.1 + 1e-7) / 2},
                                                                {kRestarts, 0, 0.1},
                                                                {kRestarts, 5, 0.0505},
                                                                {kRestarts, 9, 0.0034227024433899004},
                                                                {kRestarts, 10, 0.1},  // then 20 steps, then 40
                                                                {kRestarts, 20, 0.0505},
                                                                {kRestarts, 30, 0.1},
                                                                {kRestarts, 50, 0.0505},
                                                                {kPolynomial, 0, 0.1},
                                                                {kPolynomial, 1, 0.0950625},
                                                                {kPolynomial, 20, 0.025},
                                                                {kPolynomial, 40, 0},
                                                                {kPolynomial, 41, 0},
                                                                {kOneCycle, 0, 0.02},
                                                                {kOneCycle, 1, 0.02394634445258309},
                                                                {kOneCycle, 60, 0.02 / 1e4},
                                                                {kOneCycle, 1000, 0.02 / 1e4},
                                                                {kWarmCosine, 0, 0.01},
                                                                {kWarmCosine, 4, 0.055},
                                                                {kWarmCosine, 8, 0.1},
                                                                {kWarmCosine, 34, 0.05},
                                                                {kPlateau, 7, 0.1}};
  for (const auto& [options, step, rate] : table) {
    EXPECT_NEAR(lr_at(options, step), rate, 1e-15) << describe(options, "step") << " at " << step;
  }
  EXPECT_EQ(lr_at(kCosine, 0), 0.1);
}

TEST(Schedule, WarmsUpWithoutALostStepBeforeAnyShape) {
  for (ScheduleOptions options : kAll) {
    options.warmup = 4;
    const double first = options.first_lr();
    EXPECT_DOUBLE_EQ(lr_at(options, 0), first / 4) << describe(options, "step");
    EXPECT_DOUBLE_EQ(lr_at(options, 3), first);
    EXPECT_NEAR(lr_at(options, 4), first, 1e-15);
    options.warmup_start = 0.5;
    EXPECT_DOUBLE_EQ(lr_at(options, 0), first / 2);
    EXPECT_DOUBLE_EQ(lr_at(options, 2), first * 0.75);
    EXPECT_NEAR(lr_at(options, 4), first, 1e-15);
  }
}

TEST(Schedule, NoRateIsBelowTheLeast) {
  for (ScheduleOptions options : kAll) {
    options.lr_min = 0.03;
    options.check();
    for (int64_t step = 0; step < 200; ++step) EXPECT_GE(lr_at(options, step), 0.03) << describe(options, "step");
    EXPECT_GE(lr_at(options, std::numeric_limits<int64_t>::max()), 0.03);
  }
}

TEST(Schedule, CosineStaysAtItsEnd) {
  for (const int64_t step : {int64_t{60}, int64_t{61}, int64_t{90}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(lr_at(kCosine, step), 1e-7);
  }
  EXPECT_EQ(lr_at({.shape = CosineLr{.t_max = 0}, .lr_min = 0.005, .warmup = 3}, 3), 0.005);
}

TEST(Schedule, ChecksItsOptions) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ScheduleOptions& good : kAll) EXPECT_NO_THROW(good.check());
  for (const ScheduleOptions& bad : {ScheduleOptions{.base_lr = -1},
                                     ScheduleOptions{.base_lr = nan},
                                     ScheduleOptions{.lr_min = -1},
                                     ScheduleOptions{.base_lr = 0.1, .lr_min = 0.2},
                                     ScheduleOptions{.warmup = -1},
                                     ScheduleOptions{.warmup_start = 2},
                                     ScheduleOptions{.shape = StepLr{.step_size = 0}},
                                     ScheduleOptions{.shape = StepLr{.gamma = nan}},
                                     ScheduleOptions{.shape = MultiStepLr{}},
                                     ScheduleOptions{.shape = MultiStepLr{.milestones = {3, 2}}},
                                     ScheduleOptions{.shape = MultiStepLr{.milestones = {-1}}},
                                     ScheduleOptions{.shape = ExponentialLr{.gamma = -1}},
                                     ScheduleOptions{.shape = CosineLr{.t_max = -1}},
                                     ScheduleOptions{.shape = CosineRestartsLr{.t_0 = 0}},
                                     ScheduleOptions{.shape = CosineRestartsLr{.t_mult = 0}},
                                     ScheduleOptions{.shape = OneCycleLr{.max_lr = 0}},
                                     ScheduleOptions{.shape = OneCycleLr{.total_steps = 0}},
                                     ScheduleOptions{.shape = OneCycleLr{.pct_start = 1}},
                                     ScheduleOptions{.shape = OneCycleLr{.div_factor = 0.5}},
                                     ScheduleOptions{.shape = OneCycleLr{.max_lr = 0.1}, .lr_min = 0.2},
                                     ScheduleOptions{.shape = PolynomialLr{.total_iters = 0}},
                                     ScheduleOptions{.shape = PolynomialLr{.power = 0}},
                                     ScheduleOptions{.shape = PlateauLr{.factor = 1}},
                                     ScheduleOptions{.shape = PlateauLr{.patience = -1}},
                                     ScheduleOptions{.shape = PlateauLr{.threshold = nan}}}) {
    EXPECT_THROW(bad.check(), ConfigError) << describe(bad, "step");
  }
}

TEST(Schedule, IsDescribed) {
  EXPECT_EQ(describe(kWarmCosine, "epoch"), "cosine to 0 at epoch 60, warm-up 8 epochs from lr 0.01");
  EXPECT_EQ(describe(kMultiStep, "step"), "multistep, × 0.5 at step 10, 25, 50");
  EXPECT_EQ(describe(kRestarts, "epoch"), "cosine-restarts to 0.001 in 10 epochs, each × 2 as long");
  std::set<std::string> texts;
  for (const ScheduleOptions& options : kAll) texts.insert(describe(options, "step"));
  EXPECT_EQ(texts.size(), std::size(kAll));
}

}  // namespace
}  // namespace lockstep::schedule
