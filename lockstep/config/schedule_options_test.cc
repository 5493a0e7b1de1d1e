#include "lockstep/config/schedule_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "lockstep/config/toml_file.h"

namespace lockstep::config {
namespace {

using testing::HasSubstr;
using O = TrainOptions;
using Kind = ScheduleKind;

// The line of the ConfigError that the change leads to; "" if it is fine.
std::string refusal(Kind kind, const std::function<void(O&)>& change) {
  O options;
  change(options);
  try {
    check_schedule(options, kind);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(ScheduleOptions, GoWithTheirSchedulesOnly) {
  EXPECT_EQ(
      refusal(Kind::kCosine, [](O& o) { o.gamma = 0.5; }),
      "--gamma: goes with --schedule step, multistep or exponential only, this run's is cosine; leave --gamma out, "
      "or change --schedule");
  EXPECT_NE(refusal(Kind::kConstant, [](O& o) { o.step_size = 5; }), "");
  EXPECT_EQ(refusal(Kind::kStep, [](O& o) { o.step_size = 5, o.gamma = 0.5; }), "");
  EXPECT_NE(refusal(Kind::kStep, [](O& o) { o.milestones = {5}; }), "");
  EXPECT_NE(refusal(Kind::kCosine, [](O& o) { o.restart_every = 5; }), "");
  EXPECT_NE(refusal(Kind::kPolynomial, [](O& o) { o.max_lr = 5; }), "");
  EXPECT_NE(refusal(Kind::kOneCycle, [](O& o) { o.plateau_metric = "loss"; }), "");
  EXPECT_EQ(refusal(Kind::kPlateau, [](O& o) { o.plateau_metric = "dice", o.threshold_mode = ThresholdMode::kAbs; }),
            "");
}

TEST(ScheduleOptions, WhatAScheduleCantDoWithout) {
  const auto nothing = [](O&) {};
  EXPECT_EQ(refusal(Kind::kMultiStep, nothing),
            "--schedule multistep: needs --milestones, as in --milestones 10,25,50");
  EXPECT_THAT(refusal(Kind::kExponential, nothing), HasSubstr("needs --gamma"));
  EXPECT_THAT(refusal(Kind::kCosineRestarts, nothing), HasSubstr("needs --restart-every"));
  for (const Kind kind :
       {Kind::kConstant, Kind::kStep, Kind::kCosine, Kind::kOneCycle, Kind::kPolynomial, Kind::kPlateau})
    EXPECT_EQ(refusal(kind, nothing), "") << to_string(kind);
  EXPECT_THAT(refusal(Kind::kPlateau, [](O& o) { o.eval_every = Interval{.count = 0}; }), HasSubstr("--eval-every 0"));
}

TEST(ScheduleOptions, LengthsFitTogether) {
  EXPECT_NE(refusal(Kind::kCosine, [](O& o) { o.warmup = 11, o.schedule_steps = 10; }), "");
  EXPECT_NE(refusal(Kind::kCosine, [](O& o) { o.schedule_unit = ScheduleUnit::kEpochs, o.schedule_steps = 10; }), "");
}

TEST(ScheduleOptions, Milestones) {
  const std::vector<int64_t> some = {10, 25, 50};
  EXPECT_EQ(read_milestones("milestones", "10,25,50"), some);
  EXPECT_EQ(read_milestones("milestones", write_milestones(some)), some);
  for (const char* bad : {"", ",", "10,", ",10", "0", "5,5", "9,3", "1,x", "1;2", "-1"}) {
    EXPECT_THROW(read_milestones("milestones", bad), ConfigError) << bad;
  }
}

// What a run is resumed with.
TEST(ScheduleOptions, AreTheSameFromARunsRecord) {
  const auto table = train_table();
  for (const auto& [name, value] :
       std::initializer_list<std::pair<std::string, std::string>>{{"milestones", "3,5"},
                                                                  {"max-lr", "0.5"},
                                                                  {"threshold-mode", "abs"},
                                                                  {"plateau-metric", "dice"},
                                                                  {"restart-mult", "2"},
                                                                  {"schedule-unit", "epochs"},
                                                                  {"patience", "4"}}) {
    const auto row =
        std::find_if(table.begin(), table.end(), [&, &wanted = name](const auto& each) { return each.name == wanted; });
    ASSERT_NE(row, table.end()) << name;
    O options;
    row->set(options, value);
    EXPECT_EQ(row->get(options), value);
    const std::string file = testing::TempDir() + "/schedule_options.toml";
    std::ofstream(file) << to_toml(options);
    const auto read = read_toml(file, shapes_of(table));
    EXPECT_EQ(std::count_if(read.begin(), read.end(),
                            [&, &wanted = name, &told = value](const GivenOption& option) {
                              return option.name == wanted && option.value == told;
                            }),
              1)
        << name;
  }
}

}  // namespace
}  // namespace lockstep::config
