#include "lockstep/base/run_main.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "lockstep/base/board.h"
#include "lockstep/base/error.h"
#include "lockstep/base/node_memory.h"

namespace lockstep {
namespace {

using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

TEST(RunMain, GivesBackTheBodysCode) {
  EXPECT_EQ(run_main([] { return 3; }), 3);
}

TEST(RunMain, ErrorsBecomeALineAndACode) {
  CaptureStderr();
  EXPECT_EQ(run_main([]() -> int { throw DataError("a.gz: damaged"); }), 65);
  EXPECT_EQ(GetCapturedStderr(), "error: a.gz: damaged\n");
  CaptureStderr();
  EXPECT_EQ(run_main([]() -> int { throw DataError("two\nlines.gz: damaged"); }), 65);
  EXPECT_EQ(GetCapturedStderr(), "error: two\\nlines.gz: damaged\n");
  CaptureStderr();
  EXPECT_EQ(run_main([]() -> int { throw std::runtime_error("one\ntwo\nException raised from f\nframe #0"); }), 70);
  EXPECT_EQ(GetCapturedStderr(), "error: one; two\n") << "without libtorch's stack";
}

TEST(RunMain, UnderOurLauncherTheLineGoesToTheBoard) {
  const NodeMemory memory = NodeMemory::create(2);
  setenv("LOCKSTEP_NODE_MEMORY", memory.to_env().c_str(), 1);
  setenv("LOCAL_RANK", "1", 1);
  const Mapping mapping(memory.board.get());
  const BoardRank& self = Board::attach(mapping.data())->ranks[1];
  EXPECT_EQ(run_main([] { return kExitStoppedOnRequest; }), kExitStoppedOnRequest);
  EXPECT_EQ(self.ended.load(), 1u) << "a launcher may be unable to learn how the process ended";
  EXPECT_EQ(self.state.load(), RankState::kStarting) << "it has joined no world";
  EXPECT_EQ(self.pid.load(), 0) << "nobody is to take it for a rank that has died";
  EXPECT_EQ(self.exit_code.load(), kExitStoppedOnRequest);
  EXPECT_EQ(self.counts_steps.load(), 0U);
  tell_that_steps_are_counted();
  EXPECT_NE(self.counts_steps.load(), 0U);
  EXPECT_EQ(run_main([]() -> int { throw CommError("rank 0 is gone"); }), 69);
  EXPECT_EQ(self.error.get(), "rank 0 is gone");
  EXPECT_EQ(self.exit_code.load(), 69);

  setenv("LOCKSTEP_NODE_MEMORY", "rubbish", 1);
  CaptureStderr();
  EXPECT_EQ(run_main([] { return 0; }), 2);
  EXPECT_THAT(GetCapturedStderr(), testing::HasSubstr("LOCKSTEP_NODE_MEMORY=rubbish: not a list"));
  unsetenv("LOCKSTEP_NODE_MEMORY");
  unsetenv("LOCAL_RANK");
}

TEST(RunMain, UnderAnotherLauncherTheRanksOfTheWorldLearnTheError) {
  const NodeMemory memory = NodeMemory::create(2);
  const Mapping mapping(memory.board.get());
  BoardRank& self = Board::attach(mapping.data())->ranks[1];
  publish_errors_on(&self);
  CaptureStderr();
  EXPECT_EQ(run_main([]() -> int { throw DataError("a.gz: damaged"); }), 65);
  publish_errors_on(nullptr);
  EXPECT_EQ(GetCapturedStderr(), "error: a.gz: damaged\n");
  EXPECT_EQ(self.state.load(), RankState::kFailed);
  EXPECT_EQ(self.exit_code.load(), 65);
  EXPECT_EQ(self.error.get(), "a.gz: damaged");
}

TEST(EndProcessDeathTest, ReportsTheErrorAndEndsWithItsCode) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_process(CommError("rank 0 is gone")), testing::ExitedWithCode(69), "^error: rank 0 is gone\n$");
}

}  // namespace
}  // namespace lockstep
