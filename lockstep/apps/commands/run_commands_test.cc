#include "lockstep/apps/commands/run_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::apps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::refusal;

TEST(RunCommands, AreRead) {
  Command<PsOptions> ps;
  ps.read({"runs", "--all", "/data/runs", "--json"});
  EXPECT_THAT(ps.options().folders, ElementsAre("runs", "/data/runs"));
  EXPECT_TRUE(ps.options().all && ps.options().json);
  Command<LogsOptions> logs;
  logs.read({"-f", "mnist-1", "-n20", "--rank", "1"});
  EXPECT_TRUE(logs.options().follow);
  EXPECT_EQ(logs.options().run, "mnist-1");
  EXPECT_EQ(logs.options().rank, 1);
  EXPECT_EQ(logs.options().lines, 20);
  Command<StopOptions> stop;
  stop.read({"--now", "mnist-1"});
  EXPECT_TRUE(stop.options().now);
  EXPECT_EQ(stop.options().run, "mnist-1");
}

TEST(RunCommands, BadLines) {
  EXPECT_THAT(refusal([] { Command<LogsOptions>().read({}); }), StartsWith("logs: RUN is missing"));
  EXPECT_THAT(refusal([] { Command<StopOptions>().read({"a", "b"}); }), StartsWith("stop: b: one word too many"));
  EXPECT_THAT(refusal([] { Command<LogsOptions>().read({"a", "--rank", "-1"}); }), HasSubstr("--rank -1: expected"));
  EXPECT_THAT(refusal([] { Command<StopOptions>().read({"a", "--nwo"}); }), HasSubstr("did you mean --now?"));
}

TEST(RunCommands, HelpNamesTheirOptions) {
  EXPECT_THAT(*Command<PsOptions>().read({"--help"}), HasSubstr("--all"));
  EXPECT_THAT(*Command<LogsOptions>().read({"--help"}), HasSubstr("-f (--follow)"));
  EXPECT_THAT(*Command<StopOptions>().read({"--help"}), HasSubstr("--now"));
}

}  // namespace
}  // namespace lockstep::apps
