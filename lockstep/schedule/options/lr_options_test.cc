#include "lockstep/schedule/options/lr_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lockstep/schedule/options/schedules.h"

namespace lockstep::schedule {
namespace {

using testing::HasSubstr;
using O = LrOptions;

// The line of the ConfigError that the change leads to; "" if it is fine.
std::string refusal(const std::string& of, const std::function<void(O&)>& change) {
  O options;
  change(options);
  try {
    options.check(of);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(LrOptions, GoWithTheirSchedulesOnly) {
  EXPECT_EQ(
      refusal("cosine", [](O& o) { o.gamma = 0.5; }),
      "--gamma: goes with --schedule step, multistep or exponential only, this run's is cosine; leave --gamma out, "
      "or change --schedule");
  EXPECT_NE(refusal("constant", [](O& o) { o.step_size = 5; }), "");
  EXPECT_EQ(refusal("step", [](O& o) { o.step_size = 5, o.gamma = 0.5; }), "");
  EXPECT_NE(refusal("step", [](O& o) { o.milestones = {5}; }), "");
  EXPECT_NE(refusal("cosine", [](O& o) { o.restart_every = 5; }), "");
  EXPECT_NE(refusal("polynomial", [](O& o) { o.max_lr = 5; }), "");
  EXPECT_NE(refusal("onecycle", [](O& o) { o.plateau_metric = "loss"; }), "");
  EXPECT_EQ(refusal("plateau", [](O& o) { o.plateau_metric = "dice", o.threshold_mode = ThresholdMode::kAbs; }), "");
}

TEST(LrOptions, WhatAScheduleCantDoWithout) {
  const auto nothing = [](O&) {};
  EXPECT_EQ(refusal("multistep", nothing), "--schedule multistep: needs --milestones, as in --milestones 10,25,50");
  EXPECT_THAT(refusal("exponential", nothing), HasSubstr("needs --gamma"));
  EXPECT_THAT(refusal("cosine-restarts", nothing), HasSubstr("needs --restart-every"));
  for (const char* of : {"constant", "step", "cosine", "onecycle", "polynomial", "plateau"})
    EXPECT_EQ(refusal(of, nothing), "") << of;
}

TEST(LrOptions, LengthsFitTogether) {
  EXPECT_NE(refusal("cosine", [](O& o) { o.warmup = 11, o.schedule_steps = 10; }), "");
  EXPECT_EQ(refusal("cosine", [](O& o) { o.warmup = Length(11, ScheduleUnit::kEpochs), o.schedule_steps = 10; }), "");
  EXPECT_NE(refusal("cosine", [](O& o) { o.unit = ScheduleUnit::kEpochs, o.schedule_steps = 10; }), "");
}

TEST(LrOptions, Milestones) {
  const std::vector<Length> some = {10, 25, 50};
  EXPECT_EQ(read_milestones("milestones", "10,25,50"), some);
  EXPECT_EQ(read_milestones("milestones", write_milestones(some)), some);
  for (const char* bad : {"", ",", "10,", ",10", "0", "5,5", "9,3", "1,x", "1;2", "-1", "3epochs,2epochs", "1epoch"}) {
    EXPECT_THROW(read_milestones("milestones", bad), ConfigError) << bad;
  }
  const std::vector<Length> mixed = {10, {3, ScheduleUnit::kEpochs}, {5000, ScheduleUnit::kSteps}};
  EXPECT_EQ(read_milestones("milestones", "10,3epochs,5000steps"), mixed);
  EXPECT_EQ(write_milestones(mixed), "10,3epochs,5000steps");
}

TEST(LrOptions, ALengthMayHaveAUnitOfItsOwn) {
  EXPECT_EQ(read_length("warmup", "0"), 0);
  EXPECT_EQ(read_length("warmup", "5epochs"), Length(5, ScheduleUnit::kEpochs));
  EXPECT_EQ(write_length({500, ScheduleUnit::kSteps}), "500steps");
  for (const char* bad : {"", "epochs", "5 epochs", "5min", "-1", "0epochs"}) {
    EXPECT_THROW(read_length("step-size", bad, 1), ConfigError) << bad;
  }
  LrOptions options;
  config::OptionSet rows;
  options.declare(rows);
  rows.apply(std::vector<config::GivenOption>{{"warmup", "5epochs"}, {"step-size", "100"}});
  EXPECT_EQ(rows.find("warmup")->get(), "5epochs");
  EXPECT_EQ(rows.find("step-size")->get(), "100");
}

TEST(LrOptions, ScaledRates) {
  EXPECT_EQ(read_lr_scale("scale-lr", "linear"), (LrScale{LrRule::kLinear, {}}));
  const LrScale root{LrRule::kSqrt, 256};
  EXPECT_EQ(read_lr_scale("scale-lr", "sqrt=256"), root);
  EXPECT_EQ(read_lr_scale("scale-lr", write_lr_scale(root)), root);
  for (const char* bad : {"", "cubic", "linear=", "linear=0", "linear=x", "=64"}) {
    EXPECT_THROW(read_lr_scale("scale-lr", bad), ConfigError) << bad;
  }
}

TEST(LrOptions, ReadBackAsTheyWereSet) {
  for (const auto& [name, value] :
       std::initializer_list<std::pair<std::string, std::string>>{{"milestones", "3,5"},
                                                                  {"max-lr", "0.5"},
                                                                  {"threshold-mode", "abs"},
                                                                  {"plateau-metric", "dice"},
                                                                  {"restart-mult", "2"},
                                                                  {"schedule-unit", "epochs"},
                                                                  {"scale-lr", "sqrt=64"},
                                                                  {"patience", "4"}}) {
    O options;
    config::OptionSet rows;
    options.declare(rows);
    const config::GivenOption given{name, value};
    rows.apply({&given, 1});
    EXPECT_EQ(rows.find(name)->get(), value);
    EXPECT_THAT(rows.arguments(), testing::ElementsAre(cat("--", name, "=", value)));
  }
}

}  // namespace
}  // namespace lockstep::schedule
