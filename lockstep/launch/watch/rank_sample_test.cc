#include "lockstep/launch/watch/rank_sample.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::launch {
namespace {

TEST(RankSample, WhoWasStoppedWithinAWaitDoesNotWait) {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  BoardRank rank{};
  rank.pid = child;
  rank.doing.set("waiting at all_reduce");
  EXPECT_TRUE(sample_of(rank, true).waiting);
  rank.doing.set("waiting for data");
  EXPECT_FALSE(sample_of(rank, true).waiting) << "of its own loader, not for other ranks";
  rank.doing.set("waiting at all_reduce");
  kill(child, SIGSTOP);
  ASSERT_EQ(waitpid(child, nullptr, WUNTRACED), child);
  EXPECT_FALSE(sample_of(rank, true).waiting);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace lockstep::launch
