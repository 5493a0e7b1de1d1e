#include "lockstep/base/rank_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

TEST(RankText, SaysWhatTheKernelAndTheBoardKnow) {
  const auto rank = std::make_unique<BoardRank>();
  EXPECT_EQ(state_text(*rank), "has not started");
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  rank->pid.store(child);
  EXPECT_EQ(state_text(*rank), "is alive, computing");
  rank->step.store(7);
  rank->doing.set("evaluation");
  EXPECT_EQ(state_text(*rank), "is alive, at step 7, evaluation");
  kill(child, SIGSTOP);
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  EXPECT_EQ(state_text(*rank), cat("is stopped (SIGSTOP; kill -CONT ", child, ")"));
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  EXPECT_EQ(state_text(*rank), "is dead");
}

}  // namespace
}  // namespace lockstep
