// Runs whose ranks die, and which end with the weights of a run that nobody disturbed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>

#include "endless_run.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/long_test.h"
#include "memory_cgroup.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kLong = 400;
const Words kLongRun = {"--epochs",  std::to_string(kLong / kStepsPerEpoch), "--eval-every", "50epochs", "--save-every",
                        "1000epochs"};

// A run of kLong steps that nothing disturbed, made at the first call.
const nlohmann::json& undisturbed() {
  static const TempDir dir;
  static const nlohmann::json outcome = [] {
    const auto result = lockstep(train_words(kLongRun + Words{"--nproc", "1", "--out", dir / "run"}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return outcome_of(dir / "run");
  }();
  return outcome;
}

bool has_done(const std::string& run, int64_t steps) {
  return eventually([&] { return std::ssize(steps_logged(run)) >= steps; });
}

Words surviving(const std::string& run, int nproc, const Words& more = {}, int restarts = 3) {
  const Words words = {"--max-restarts", std::to_string(restarts), "--nproc", std::to_string(nproc), "--out", run};
  return train_words(kLongRun + words + more);
}

class Killed : public ::testing::TestWithParam<int> {
 protected:
  const TempDir dir_;
  const std::string run_ = dir_ / "run";
};

TEST_P(Killed, RanksAreStartedAnewWithTheSameFinalWeights) {
  LOCKSTEP_LONG_TEST_IF(GetParam() == 2);
  const int nproc = GetParam();
  Program program(lockstep_command(surviving(run_, nproc, {"--snapshot-every", "5"})));
  ASSERT_TRUE(has_done(run_, 20)) << program.err();
  const auto done = std::ssize(steps_logged(run_));
  signal_to(worker_of(program, nproc - 1), SIGKILL);
  const auto result = program.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr(") was killed by SIGKILL\n"), HasSubstr("\n  saved: snapshot of step "),
                    HasSubstr("\n  next: resumes by itself (restart 1 of 3) | lockstep train mnist --resume ")));
  const auto at = result.out.find("restart 1: goes on after step ");
  ASSERT_NE(at, std::string::npos) << result.out;
  EXPECT_GE(std::stoll(result.out.substr(at + 30)), done - 5) << "at most the steps since the last snapshot";
  EXPECT_EQ(steps_logged(run_), first_steps(kLong));
  EXPECT_EQ(outcome_of(run_), undisturbed());
  const auto report = nlohmann::json::parse(read_file(run_ + "/errors/attempt0.json"));
  EXPECT_EQ(report.at("rank"), nproc - 1);
  EXPECT_EQ(report.at("restart"), "restart 1 of 3");
}

INSTANTIATE_TEST_SUITE_P(Ranks, Killed, ::testing::Values(1, 2, 4));

class Survival : public Killed {};

TEST_F(Survival, WithoutSnapshotsTheRunGoesOnFromItsCheckpoint) {
  LOCKSTEP_LONG_TEST_IF(true);
  Program program(lockstep_command(
      train_words({"--epochs", std::to_string(kLong / kStepsPerEpoch), "--eval-every", "50epochs", "--save-every", "20",
                   "--snapshot-every", "0", "--max-restarts", "3", "--nproc", "2", "--out", run_})));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(run_ + "/checkpoints/step-000020.pt"); }))
      << program.err();
  signal_to(worker_of(program, 1), SIGKILL);
  const auto result = program.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, ::testing::ContainsRegex("restart 1: goes on after step [0-9]+, .*/checkpoints/step-0"));
  EXPECT_EQ(steps_logged(run_), first_steps(kLong));
  EXPECT_EQ(outcome_of(run_), undisturbed());
}

TEST_F(Survival, WithoutACheckpointTheRunBeginsAnew) {
  LOCKSTEP_LONG_TEST_IF(true);
  Program program(lockstep_command(surviving(run_, 2, {"--snapshot-every", "0"})));
  ASSERT_TRUE(has_done(run_, 5)) << program.err();
  signal_to(worker_of(program, 0), SIGSEGV);
  const auto result = program.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("\n  next: starts anew by itself (restart 1 of 3)\n"));
  EXPECT_THAT(result.out, HasSubstr("restart 1: begins anew\n"));
  EXPECT_EQ(steps_logged(run_), first_steps(kLong));
  EXPECT_EQ(outcome_of(run_), undisturbed());
}

// The kernel's OOM killer, in a cgroup that is full.
TEST_F(Survival, ARankThatIsKilledForWantOfMemoryIsStartedAnew) {
  LOCKSTEP_LONG_TEST_IF(true);
  const MemoryCgroup cgroup(uint64_t{2} << 30);
  if (!cgroup.is_there()) GTEST_SKIP() << "only root can make a memory cgroup, where the machine has a place for one";
  Program::Options options = lockstep_command(surviving(run_, 2, {"--snapshot-every", "5"}));
  options.command = cgroup.entered_by(options.command);
  Program program(options);
  ASSERT_TRUE(has_done(run_, 20)) << program.err();
  const pid_t victim = worker_of(program, 1);
  ASSERT_GT(victim, 0);
  ASSERT_TRUE(cgroup.fill_until_it_kills(victim)) << program.err();
  const auto result = program.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(
      result.err,
      AllOf(HasSubstr(cat("rank 1 (pid ", victim, ") was killed by SIGKILL: out of memory (cgroup limit 2 GiB)")),
            HasSubstr("(restart 1 of 3)")));
  EXPECT_EQ(steps_logged(run_), first_steps(kLong));
  EXPECT_EQ(outcome_of(run_), undisturbed());
}

TEST_F(Survival, EachDeathCostsARestart) {
  LOCKSTEP_LONG_TEST_IF(true);
  Program program(lockstep_command(surviving(run_, 2, {"--snapshot-every", "5"})));
  int64_t done = 20;
  for (int restart = 1; restart <= 3; ++restart, done += 60) {
    ASSERT_TRUE(has_done(run_, done)) << program.err();
    const pid_t victim = worker_of(program, restart % 2);
    ASSERT_GT(victim, 0);
    kill(victim, SIGKILL);
    ASSERT_TRUE(eventually([&] {
      return program.err().find(cat("(restart ", restart, " of 3)")) != std::string::npos;
    })) << program.err();
    ASSERT_TRUE(eventually([&] { return worker_of(program, 0) > 0 && worker_of(program, 1) > 0; }));
  }
  ASSERT_TRUE(has_done(run_, done)) << program.err();
  signal_to(worker_of(program, 0), SIGKILL);
  const auto result = program.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_THAT(result.err, HasSubstr("\n  restarts: all 3 are used up\n"));
  EXPECT_TRUE(program.all_gone(std::chrono::seconds(2)));
  const auto resumed = lockstep({"train", "--resume", run_});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(outcome_of(run_), undisturbed());
}

// Each of its starts fails before the first step.
TEST_F(Survival, ARankThatDiesAtItsStartEndsTheRunAfterThreeRestarts) {
  Program program(lockstep_command(surviving(run_, 2, {}, 50)));
  for (int attempt = 0; attempt < 4; ++attempt) {
    ASSERT_TRUE(eventually([&] { return worker_of(program, 1) > 0; })) << attempt << program.err();
    const pid_t victim = worker_of(program, 1);
    kill(victim, SIGKILL);
    ASSERT_TRUE(eventually([&] { return worker_of(program, 1) != victim; }));
  }
  const auto result = program.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_THAT(result.err, HasSubstr("restarts: none: 3 attempts in a row got no further than step 0\n"));
}

TEST_F(Survival, WhereARankKeepsDyingFewerGoOn) {
  LOCKSTEP_LONG_TEST_IF(true);
  const Words words = {"--nproc", "1:4", "--max-restarts", "5", "--out", run_};
  Program program(lockstep_command(train_words(kLongRun + words)));
  for (int attempt = 0; attempt < 2; ++attempt) {
    ASSERT_TRUE(eventually([&] { return worker_of(program, 3) > 0; })) << program.err();
    const pid_t victim = worker_of(program, 3);
    kill(victim, SIGKILL);
    ASSERT_TRUE(eventually([&] { return worker_of(program, 3) != victim; }));
  }
  const auto result = program.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("(restart 2 of 5, with 2 ranks in place of 4)"));
  EXPECT_EQ(outcome_of(run_), undisturbed());
}

// Its BatchNorm's statistics come back, too.
TEST_F(Survival, AResNetWhoseRankIsKilledEndsWithTheSameWeights) {
  LOCKSTEP_LONG_TEST_IF(true);
  const auto words = [&](const std::string& out) {
    return Words{"train",   "imagenet", "--arch",       "resnet18", "--size",  "32", "--lanes", "2",
                 "--nproc", "2",        "--batch-size", "8",        "--steps", "40", "--out",   out};
  };
  ASSERT_EQ(lockstep(words(dir_ / "undisturbed")).exit_code, 0);
  Program program(lockstep_command(words(run_) + Words{"--snapshot-every", "3"}));
  ASSERT_TRUE(has_done(run_, 10)) << program.err();
  signal_to(worker_of(program, 1), SIGKILL);
  const auto result = program.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("(restart 1 of 3)"));
  EXPECT_EQ(outcome_of(run_), outcome_of(dir_ / "undisturbed"));
}

TEST_F(Survival, AStopDuringARestartSavesAndEnds) {
  LOCKSTEP_LONG_TEST_IF(true);
  Program program(lockstep_command(surviving(run_, 2, {"--snapshot-every", "5"})));
  ASSERT_TRUE(has_done(run_, 20)) << program.err();
  signal_to(worker_of(program, 0), SIGKILL);
  ASSERT_TRUE(eventually([&] { return program.err().find("(restart 1 of 3)") != std::string::npos; }));
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait().exit_code, kExitStoppedOnRequest) << program.err();
  const auto resumed = lockstep({"train", "--resume", run_});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(outcome_of(run_), undisturbed());
}

// Faults at random moments of a run: a rank that is killed, breaks, or stands still for a while, or the launcher that
// is asked to stop, after which the run goes on with another number of ranks. LOCKSTEP_SOAK_FAULTS says how many
// (default 4), LOCKSTEP_SOAK_SEED which; with LOCKSTEP_SOAK_KILLS all are kill -9.
class RandomFaults : public Survival {
 protected:
  static constexpr int kFaultsARun = 4;

  int below(int end) { return static_cast<int>(draw_() % static_cast<uint64_t>(end)); }
  int draw_nproc() { return 1 << below(3); }
  static Words on(int nproc, Words words) {
    return std::move(words) + Words{"--nproc", std::to_string(nproc), "--snapshot-every", "7"};
  }
  // For some tenths of a second the process has a third of its time.
  void slow_down(pid_t victim) {
    constexpr int kTimes = 20;
    for (int i = 0; victim > 0 && i < kTimes; ++i) {
      kill(victim, SIGSTOP);
      usleep(10'000);
      kill(victim, SIGCONT);
      usleep(5'000);
    }
  }
  // Returns whether the run goes on by itself.
  bool harm(Program& program, int nproc) {
    const int rank = below(nproc), fault = env("LOCKSTEP_SOAK_KILLS") ? 0 : below(6);
    const pid_t victim = worker_of(program, rank);
    trace_ += cat(" fault ", fault, " to rank ", rank, " of ", nproc, ';');
    if (fault == 4) return ++harmed_, program.signal(SIGTERM), false;
    harmed_ += victim > 0;
    if (fault == 5) return slow_down(victim), true;
    if (victim > 0) kill(victim, std::array{SIGKILL, SIGSEGV, SIGABRT, SIGSTOP}[static_cast<size_t>(fault)]);
    if (fault != 3) return true;
    usleep(static_cast<useconds_t>(below(500)) * 1000);
    if (victim > 0) kill(victim, SIGCONT);
    return true;
  }
  void run_once() {
    const std::string run = dir_ / cat("run", runs_++);
    const Words more = {"--max-restarts", "1000", "--ledger", "--out", run};
    Words words = train_words(kLongRun + more);
    int faults = 0;
    for (bool ended = false; !ended;) {
      const int nproc = draw_nproc();
      Program program(lockstep_command(on(nproc, words)));
      bool goes_on = true;
      while (goes_on && faults < kFaultsARun) {
        usleep(static_cast<useconds_t>(100 + below(800)) * 1000);  // short beside the run
        if (program.processes("lockstep").empty()) break;
        goes_on = harm(program, nproc);
        ++faults;
      }
      const auto result = program.wait(std::chrono::seconds(120));
      ended = result.exit_code == 0;
      // The request to stop may come while a death is reported, and the faults before a first step is done.
      const bool stopped = result.exit_code == kExitStoppedOnRequest || result.exit_code == 128 + SIGTERM ||
                           result.err.find("  restarts: none: ") != std::string::npos;
      ASSERT_TRUE(ended || stopped) << result.exit_code << result.err;
      words = {"train", "--resume", run, "--max-restarts", "1000"};
      if (!ended && !std::filesystem::exists(run + "/checkpoints/last.pt") &&
          !std::filesystem::exists(run + "/checkpoints/INTERRUPTED.pt")) {
        words = train_words(kLongRun + more + Words{"--overwrite"});
      }
    }
    EXPECT_EQ(steps_logged(run), first_steps(kLong));
    EXPECT_EQ(outcome_of(run), undisturbed());
    const auto verified = lockstep({"verify", run});
    EXPECT_EQ(verified.exit_code, 0) << verified.err;
    EXPECT_THAT(verified.out,
                HasSubstr(cat(", in ", kLong / kStepsPerEpoch, " epochs of 100 samples, each used once\n")))
        << verified.out;
    std::filesystem::remove_all(run);
  }

  std::mt19937_64 draw_{static_cast<uint64_t>(env_int("LOCKSTEP_SOAK_SEED", 0, 1'000'000'000).value_or(1))};
  std::string trace_;
  int64_t runs_ = 0, harmed_ = 0;  // faults that found a process
};

TEST_F(RandomFaults, EndWithTheWeightsOfAnUndisturbedRun) {
  const auto faults = env_int("LOCKSTEP_SOAK_FAULTS", 1, 1'000'000).value_or(kFaultsARun);
  for (int64_t done = 0; done < faults && !HasFailure(); done += kFaultsARun) {
    trace_ = cat("LOCKSTEP_SOAK_SEED=", env("LOCKSTEP_SOAK_SEED").value_or("1"), ", run ", runs_, ':');
    run_once();
    if (HasFailure()) ADD_FAILURE() << trace_;
  }
  std::cout << harmed_ << " faults in " << runs_ << " runs\n";
  EXPECT_GE(harmed_, faults / 2);
}

TEST_F(Survival, AMistakeIsNotTriedAgain) {
  write_file(dir_ / "none.pt", "no checkpoint");  // which ranks notice, not the launcher
  const auto result = lockstep(surviving(run_, 2, {"--load", dir_ / "none.pt"}));
  EXPECT_EQ(result.exit_code, DataError::kExitCode) << result.err;
  EXPECT_THAT(result.err, Not(HasSubstr("restart")));
}

}  // namespace
}  // namespace lockstep::e2e
