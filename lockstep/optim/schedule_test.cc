#include "lockstep/optim/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"

namespace lockstep::optim {
namespace {

const ScheduleOptions kStepLr{.kind = ScheduleKind::kStep, .base_lr = 0.1, .step_size = 15, .gamma = 0.1};
const ScheduleOptions kCosineLr{.kind = ScheduleKind::kCosine, .base_lr = 0.1, .lr_min = 1e-7, .horizon_steps = 60};
const ScheduleOptions kWarmCosine{
    .kind = ScheduleKind::kCosine, .base_lr = 0.1, .horizon_steps = 60, .warmup_steps = 8, .warmup_start = 0.1};

TEST(Schedule, FollowsPyTorchsRecord) {
  const std::filesystem::path path = LOCKSTEP_SOURCE_DIR "/../shared/fixtures/golden/schedules.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const nlohmann::json record = nlohmann::json::parse(std::ifstream(path));
  const std::pair<const char*, ScheduleOptions> pairs[] = {
      {"StepLR(step_size=15,gamma=0.1)", kStepLr},
      {"CosineAnnealingLR(T_max=60,eta_min=1e-7)", kCosineLr},
      {"LinearLR(start_factor=0.1,total_iters=8)+CosineAnnealingLR(T_max=52)", kWarmCosine}};
  for (const auto& [name, options] : pairs) {
    const auto& rates = record["schedules"].at(name);
    ASSERT_EQ(rates.size(), 60u);
    for (int64_t step = 0; step < 60; ++step) {
      EXPECT_NEAR(lr_at(options, step), rates[static_cast<size_t>(step)].get<double>(), 1e-12) << name << " " << step;
    }
  }
}

// The same ground without the record.
TEST(Schedule, HasTheValuesOfItsForms) {
  EXPECT_EQ(lr_at({.base_lr = 0.3}, 12345), 0.3);
  EXPECT_DOUBLE_EQ(lr_at(kStepLr, 14), 0.1);
  EXPECT_DOUBLE_EQ(lr_at(kStepLr, 15), 0.01);
  EXPECT_DOUBLE_EQ(lr_at(kStepLr, 45), 0.0001);
  EXPECT_EQ(lr_at(kCosineLr, 0), 0.1);
  EXPECT_NEAR(lr_at(kCosineLr, 30), (0.1 + 1e-7) / 2, 1e-15);
  EXPECT_NEAR(lr_at(kCosineLr, 1), 0.09993147680625196, 1e-15);
  EXPECT_DOUBLE_EQ(lr_at(kWarmCosine, 0), 0.01);
  EXPECT_DOUBLE_EQ(lr_at(kWarmCosine, 4), 0.055);
  EXPECT_DOUBLE_EQ(lr_at(kWarmCosine, 8), 0.1);
  EXPECT_DOUBLE_EQ(lr_at(kWarmCosine, 34), 0.05);
}

TEST(Schedule, WarmsUpWithoutALostStep) {
  ScheduleOptions options{.base_lr = 1, .warmup_steps = 4};
  for (const ScheduleKind kind : {ScheduleKind::kConstant, ScheduleKind::kStep, ScheduleKind::kCosine}) {
    options.kind = kind;
    options.horizon_steps = 100;
    EXPECT_EQ(lr_at(options, 0), 0.25);
    EXPECT_EQ(lr_at(options, 3), 1);
    EXPECT_EQ(lr_at(options, 4), 1);
  }
}

TEST(Schedule, CosineStaysAtItsEnd) {
  for (const int64_t step : {int64_t{60}, int64_t{61}, int64_t{90}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(lr_at(kCosineLr, step), 1e-7);
  }
  EXPECT_EQ(lr_at({.kind = ScheduleKind::kCosine, .lr_min = 0.005, .horizon_steps = 3, .warmup_steps = 3}, 3), 0.005);
}

TEST(Schedule, ChecksItsOptions) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ScheduleOptions& good : {ScheduleOptions{}, kStepLr, kCosineLr, kWarmCosine})
    EXPECT_NO_THROW(good.check());
  for (const ScheduleOptions& bad :
       {ScheduleOptions{.base_lr = -1}, ScheduleOptions{.base_lr = nan}, ScheduleOptions{.lr_min = -1},
        ScheduleOptions{.warmup_steps = -1}, ScheduleOptions{.warmup_start = 2},
        ScheduleOptions{.kind = ScheduleKind::kStep, .step_size = 0}, ScheduleOptions{.kind = ScheduleKind::kCosine},
        ScheduleOptions{.kind = ScheduleKind::kStep, .gamma = nan},
        ScheduleOptions{.kind = ScheduleKind::kCosine, .horizon_steps = 5, .warmup_steps = 6},
        ScheduleOptions{.kind = ScheduleKind::kCosine, .base_lr = 0.1, .lr_min = 0.2, .horizon_steps = 5}}) {
    EXPECT_THROW(bad.check(), ConfigError);
  }
}

TEST(Schedule, NamesAreParsed) {
  EXPECT_EQ(parse_schedule("cosine"), ScheduleKind::kCosine);
  EXPECT_EQ(parse_schedule("step"), ScheduleKind::kStep);
  EXPECT_EQ(parse_schedule("constant"), ScheduleKind::kConstant);
  try {
    parse_schedule("cosin");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean cosine?"));
  }
  EXPECT_THROW(parse_schedule(""), ConfigError);
}

}  // namespace
}  // namespace lockstep::optim
