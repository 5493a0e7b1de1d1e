// Processes that are killed: the rest ends within a second, and says who was first.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "endless_run.h"

namespace lockstep::e2e {
namespace {

class KilledRank : public ::testing::TestWithParam<int> {};

TEST_P(KilledRank, EndsTheOthersAndIsNamed) {
  EndlessRun run(4);
  ASSERT_TRUE(run.is_training());
  ASSERT_EQ(run.program.processes("lockstep-worker").size(), 4u);
  const pid_t victim = run.worker(GetParam());
  ASSERT_GT(victim, 0);
  kill(victim, SIGKILL);
  const auto result = run.program.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_TRUE(run.program.all_gone(std::chrono::seconds(5)));

  const std::string who = "rank " + std::to_string(GetParam()) + " (pid " + std::to_string(victim) + ")";
  EXPECT_EQ(result.err.rfind("error: " + who + " was killed by SIGKILL", 0), 0u) << result.err;
  EXPECT_NE(result.err.find("\n  when: step "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("\n  others: "), std::string::npos) << result.err;
  const auto report = nlohmann::json::parse(read_file(run.folder() + "/errors/attempt0.json"));
  EXPECT_EQ(report.at("rank"), GetParam());
  EXPECT_EQ(report.at("signal"), SIGKILL);
  EXPECT_LT(report.at("stop_seconds").get<double>(), 10);  // below 1 on a machine with nothing else to do
  EXPECT_EQ(report.at("ranks").size(), 4u);
}

INSTANTIATE_TEST_SUITE_P(Ranks, KilledRank, ::testing::Values(0, 3));

// A rank in the middle of a collective with one that stands still sees nothing but the clock.
TEST(KilledRank, WhileAnotherStandsStill) {
  EndlessRun run(2);
  ASSERT_TRUE(run.is_training());
  signal_to(run.worker(0), SIGSTOP);
  const auto killed = std::chrono::steady_clock::now();
  signal_to(run.worker(1), SIGKILL);
  EXPECT_EQ(run.program.wait().exit_code, 128 + SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - killed, std::chrono::seconds(10));  // long before a timeout
  EXPECT_TRUE(run.program.all_gone(std::chrono::seconds(5)));
}

// The others' end does not take the work of a save.
TEST(KilledRank, WhileRank0Saves) {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "a sanitizer comes before every library";
#endif
  const TempDir dir;
  const std::string run = dir / "held_disk/run", checkpoint = run + "/checkpoints/step-000005.pt";
  const std::string library = bin_folder() + "/failing_disk.so";
  ASSERT_TRUE(std::filesystem::exists(library));
  std::filesystem::create_directories(dir / "held_disk");
  Program::Options options =
      lockstep_command(train_words({"--nproc", "2", "--steps", "12", "--save-every", "5", "--eval-every", "60epochs",
                                    "--background-saves", "off", "--quiet", "--out", run}));
  const Words preload = {"/usr/bin/env", "LD_PRELOAD=" + library};
  options.command.insert(options.command.begin(), preload.begin(), preload.end());
  Program program(options);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(checkpoint + ".tmp"); })) << program.err();
  const pid_t victim = worker_of(program, 1);
  ASSERT_GT(victim, 0);
  kill(victim, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !program.err().empty(); }));
  EXPECT_EQ(program.err(),
            "rank 1 was killed by SIGKILL; waiting for rank 0 (saving the checkpoint of step 5), for at most 60 s "
            "without progress\n");
  write_file(dir / "held_disk/go", "");
  const auto result = program.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_NE(result.err.find("\n  saved: checkpoint " + checkpoint + '\n'), std::string::npos) << result.err;
  EXPECT_TRUE(std::filesystem::exists(checkpoint));
  const auto resumed = lockstep({"train", "--resume", run, "--steps", "12"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(outcome_of(run), outcome_of(finished_run()));
}

TEST(KilledFront, IsOutlivedByNobody) {
  EndlessRun run(2);
  ASSERT_TRUE(run.is_training());
  signal_to(run.worker(1), SIGSTOP);
  run.program.signal(SIGKILL);
  EXPECT_TRUE(run.program.all_gone(std::chrono::seconds(5)));
  EXPECT_EQ(run.program.wait().exit_code, 128 + SIGKILL);
}

// The process that has the launcher's command line, and is its child.
void kill_guard(const EndlessRun& run) {
  const auto guards = run.program.processes("lockstep-guard");
  ASSERT_EQ(guards.size(), 1u);
  kill(guards[0], SIGKILL);
  EXPECT_TRUE(eventually([&] { return run.program.err().rfind("warning: lockstep-guard was killed", 0) == 0; }))
      << run.program.err();
}

TEST(KilledGuard, IsToldAndTheRunEndsAsItWould) {
  EndlessRun run(2);
  ASSERT_TRUE(run.is_training());
  kill_guard(run);
  run.program.signal(SIGTERM);
  const auto result = run.program.wait();
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_TRUE(run.program.all_gone(std::chrono::seconds(5)));
}

TEST(KilledGuard, IsNotNeededForTheRanksEnd) {
  EndlessRun run(2);
  ASSERT_TRUE(run.is_training());
  kill_guard(run);
  run.program.signal(SIGKILL);
  EXPECT_TRUE(run.program.all_gone(std::chrono::seconds(2)));
}

}  // namespace
}  // namespace lockstep::e2e
