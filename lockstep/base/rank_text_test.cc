#include "lockstep/base/rank_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
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
  usleep(200'000);
  EXPECT_THAT(state_text(*rank), testing::AnyOf("is alive, asleep in a pause of its own", "is alive, asleep"));
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

// A process that does one thing, as the board would tell of it.
class Doing {
 public:
  template <typename Act>
  explicit Doing(const Act& act) : child_(fork()) {
    if (child_ == 0) {
      for (volatile uint64_t turns = 0;;) {  // a loop without any effect would be none
        act();
        turns = turns + 1;
      }
    }
    rank_->pid.store(child_);
  }
  ~Doing() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  // Its state, once it has been there for a while.
  std::string state() const {
    usleep(200'000);
    return state_text(*rank_);
  }

 private:
  std::unique_ptr<BoardRank> rank_ = std::make_unique<BoardRank>();
  pid_t child_;
};

TEST(RankText, OneThatSpinsIsToldFromOneThatWaitsForAFile) {
  EXPECT_EQ(Doing([] {}).state(), "is alive, computing or spinning");
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the sanitizer's own threads run in a process that sleeps";
#endif
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string reads = Doing([&] {
                              char byte;
                              [[maybe_unused]] const ssize_t got = read(ends[0], &byte, 1);
                            }).state();
  EXPECT_THAT(reads, testing::AnyOf(testing::HasSubstr("asleep in read (pipe:["), "is alive, asleep"));
}

}  // namespace
}  // namespace lockstep
