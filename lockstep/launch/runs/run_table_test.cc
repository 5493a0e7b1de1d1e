#include "lockstep/launch/runs/run_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace lockstep::launch {
namespace {

using testing::HasSubstr;

constexpr int64_t kNow = 1'800'000'000;

RunFacts running(const std::string& folder) {
  return {.folder = folder,
          .recipe = "mnist",
          .state = RunState::kUnderWay,
          .owner = {.held = true, .pid = 812, .host = "node3"},
          .ranks = 2,
          .last = {.step = 1204, .epoch = 2, .loss = 0.048213, .samples_per_second = 915.3},
          .epochs = 10,
          .steps = 9380,
          .since = kNow - 7500};
}

TEST(RunTable, ShortTimes) {
  EXPECT_EQ(short_time(-3), "0s");
  EXPECT_EQ(short_time(59), "59s");
  EXPECT_EQ(short_time(3599), "59m");
  EXPECT_EQ(short_time(7500), "2h05m");
  EXPECT_EQ(short_time(3 * 86400 + 4 * 3600), "3d04h");
}

TEST(RunTable, ARunIsALine) {
  EXPECT_EQ(run_table({running("runs/mnist-1")}, false, "node3", kNow, ""),
            "RUN           RECIPE  PID  RANKS  STEP       LOSS     SAMPLES/S  SINCE\n"
            "runs/mnist-1  mnist   812  2      1204/9380  0.04821  915.3      2h05m\n");
  EXPECT_EQ(run_table({}, false, "node3", kNow, "no run"), "no run\n");
}

TEST(RunTable, WhatIsNotKnownIsADash) {
  EXPECT_EQ(run_table({{.folder = "a", .state = RunState::kKilled}}, true, "node3", kNow, ""),
            "RUN  RECIPE  PID  RANKS  STEP  LOSS  SAMPLES/S  STATE\n"
            "a    -       -    -      0     -     -          killed\n");
}

TEST(RunTable, FitsATerminal) {
  auto far = running("/data/people/someone/experiments/with-a-long-name/imagenet-12");
  far.owner = {.held = true, .pid = 4194303, .host = "node-0017.cluster.example.org"};
  far.recipe = "a-recipe-of-ones-own";
  far.last.step = 1'234'567, far.steps = 2'000'000, far.since = kNow - 9 * 86400;
  far.last.samples_per_second = 12345.6;
  const std::string table = run_table({far, running("runs/unet-1")}, true, "node3", kNow, "");
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    const auto columns = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
    EXPECT_LE(columns, 80) << line;
  }
  EXPECT_THAT(table, HasSubstr("imagenet-12 "));
  EXPECT_THAT(table, HasSubstr("1234567/2000000"));
  EXPECT_THAT(table, HasSubstr("9d00h"));
}

TEST(RunTable, JsonHasAllOfIt) {
  const auto json = nlohmann::json::parse(runs_json({running("r"), {.folder = "b\xff"}}, kNow));
  EXPECT_EQ(json[0]["pid"], 812);
  EXPECT_EQ(json[0]["host"], "node3");
  EXPECT_EQ(json[0]["state"], "under way");
  EXPECT_EQ(json[0]["steps"], 9380);
  EXPECT_EQ(json[0]["seconds"], 7500);
  EXPECT_TRUE(json[1]["loss"].is_null());
  EXPECT_TRUE(json[1]["pid"].is_null());
  EXPECT_EQ(runs_json({}, kNow), "[]\n");
}

}  // namespace
}  // namespace lockstep::launch
