#include "lockstep/base/rank_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <memory>

#include "lockstep/base/clock.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// The first text that matches: on a busy machine, and with a sanitizer's threads, a process needs a while to get there.
std::string state_once(const BoardRank& rank, const testing::Matcher<std::string>& awaited) {
  std::string text = state_text(rank);
  for (const Stopwatch watch; !awaited.Matches(text) && watch.seconds() < 10; text = state_text(rank)) usleep(2000);
  return text;
}

TEST(RankText, SaysWhatTheKernelAndTheBoardKnow) {
  const auto rank = std::make_unique<BoardRank>();
  EXPECT_EQ(state_text(*rank), "has not started");
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  rank->pid.store(child);
  const auto asleep = testing::AnyOf("is alive, asleep in a pause of its own", "is alive, asleep");
  EXPECT_THAT(state_once(*rank, asleep), asleep);
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
  std::string state_once(const testing::Matcher<std::string>& awaited) const {
    return lockstep::state_once(*rank_, awaited);
  }

 private:
  std::unique_ptr<BoardRank> rank_ = std::make_unique<BoardRank>();
  pid_t child_;
};

TEST(RankText, OneThatSpinsIsToldFromOneThatWaitsForAFile) {
  const std::string spins = "is alive, computing or spinning";
  EXPECT_EQ(Doing([] {}).state_once(spins), spins);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto reads = testing::AnyOf(testing::HasSubstr("asleep in read (pipe:["), "is alive, asleep");
  const std::string text = Doing([&] {
                             char byte;
                             [[maybe_unused]] const ssize_t got = read(ends[0], &byte, 1);
                           }).state_once(reads);
  EXPECT_THAT(text, reads);
}

}  // namespace
}  // namespace lockstep
