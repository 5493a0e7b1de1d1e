#include "lockstep/launch/runs/run_facts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/base/text.h"

namespace lockstep::launch {
namespace {

std::string record(int step, double rate, double seconds) {
  return cat(R"({"kind":"train","step":)", step, R"(,"epoch":2,"loss":0.5,"seconds":)", seconds,
             R"(,"samples_per_second":)", rate, "}\n");
}

TEST(RunFacts, TheNewestFileTellsHowARunEnded) {
  EXPECT_EQ(end_of_run({}), RunState::kNotBegun);
  EXPECT_EQ(end_of_run({.metrics = 5}), RunState::kKilled);
  EXPECT_EQ(end_of_run({.metrics = 5, .results = 6}), RunState::kFinished);
  EXPECT_EQ(end_of_run({.metrics = 5, .interrupted = 6}), RunState::kStopped);
  EXPECT_EQ(end_of_run({.metrics = 5, .error = 6}), RunState::kFailed);
  EXPECT_EQ(end_of_run({.error = 6}), RunState::kFailed) << "before its first step";
  // It has gone on since.
  EXPECT_EQ(end_of_run({.metrics = 9, .results = 6}), RunState::kKilled);
  EXPECT_EQ(end_of_run({.metrics = 9, .results = 6, .interrupted = 10}), RunState::kStopped);
  EXPECT_EQ(end_of_run({.metrics = 9, .results = 10, .error = 6}), RunState::kFinished);
  EXPECT_EQ(end_of_run({.metrics = 9, .results = 9}), RunState::kFinished) << "clocks are coarse";
}

TEST(RunFacts, TheLastStepsAreThoseOfTraining) {
  EXPECT_EQ(last_steps("").step, 0);
  EXPECT_FALSE(last_steps("").loss);
  const std::string text = "p\":1}\n" + record(6, 10, 3) + record(7, 30, 1) +
                           "{\"kind\":\"comm\",\"step\":7}\nrubbish\n" + R"({"kind":"eval","step":7,"loss":9})" + "\n" +
                           R"({"kind":"train","step":8,"lo)";
  const LastSteps last = last_steps(text);
  EXPECT_EQ(last.step, 7);
  EXPECT_EQ(last.epoch, 2);
  EXPECT_EQ(last.loss, 0.5);
  EXPECT_EQ(last.samples_per_second, 15) << "60 samples in 4 seconds";
  EXPECT_FALSE(last_steps("{\"kind\":\"train\",\"step\":7,\"loss\":null}\n").loss);
  EXPECT_EQ(last_steps("[1]\n{\"kind\":3}\n{\"kind\":\"train\",\"step\":\"x\"}\n").step, 0);
}

TEST(RunFacts, TheTotalIsThatOfTheLastLineOfProgress) {
  EXPECT_EQ(total_steps("epoch 1/2  step 70/300  loss 0.15\nepoch 1/2  step 138/900  loss\nepoch 1, step 300: loss\n"),
            900);
  EXPECT_EQ(total_steps("  step 70/300  loss 0.15\nepoch 1/2  step 71/3"), 300) << "the last line may be cut off";
  EXPECT_EQ(total_steps("  steps       300 (938 an epoch)\n  step x/3 \n"), 0);
  EXPECT_EQ(total_steps(""), 0);
}

TEST(RunFacts, AreReadFromTheFilesThatAreThere) {
  const testing_support::TempDir dir;
  EXPECT_EQ(facts_of_run(dir.path()).state, RunState::kNotBegun);
  std::filesystem::create_directories(dir / "logs");
  std::ofstream(dir / "config.toml") << "recipe = 'mnist'\nsteps = 40\nepochs = 3\nnproc = 2\ndata = 'a b'\n";
  std::ofstream(dir / "metrics.jsonl") << record(12, 10, 1);
  RunFacts facts = facts_of_run(dir.path());
  EXPECT_EQ(facts.recipe, "mnist");
  EXPECT_EQ(facts.ranks, 2);
  EXPECT_EQ(facts.epochs, 3);
  EXPECT_EQ(facts.last.step, 12);
  EXPECT_EQ(facts.steps, 40);
  EXPECT_EQ(facts.state, RunState::kKilled);
  std::ofstream(dir / "logs/rank0.log") << "epoch 1/3  step 12/30  loss 0.5\n";
  EXPECT_EQ(facts_of_run(dir.path()).steps, 30);
  const auto lock = train::RunLock::take(dir.path(), "--out a");
  facts = facts_of_run(dir.path());
  EXPECT_EQ(facts.state, RunState::kUnderWay);
  EXPECT_EQ(facts.owner.pid, getpid());
  EXPECT_GT(facts.since, 1'600'000'000);
  std::ofstream(dir / "config.toml") << "nproc = '2:4'\n";
  EXPECT_EQ(facts_of_run(dir.path()).ranks, 4) << "the most of a range";
  std::ofstream(dir / "config.toml") << "recipe = ";
  EXPECT_EQ(facts_of_run(dir.path()).recipe, "") << "a file that is no TOML";
}

}  // namespace
}  // namespace lockstep::launch
