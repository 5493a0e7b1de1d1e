// The examples end with 0, their losses fall, and what they print does not depend on the number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

#include "lockstep/base/testing/long_test.h"
#include "network_namespaces.h"
#include "pictures.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::HasSubstr;

Result example(const std::string& name, const Words& words = {}) {
  return Program({.command = Words{bin_folder() + "/example_" + name} + words}).wait();
}

Result example_on(int ranks, const std::string& name, const Words& words = {}) {
  return lockstep(Words{"launch", "--nproc", std::to_string(ranks), bin_folder() + "/example_" + name} + words);
}

// The losses by step, of lines such as "step 20: loss 1.23599935". A line of another form is an error of the test.
std::map<int, double> losses_of(const std::string& text) {
  std::map<int, double> losses;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    int step = 0, read = 0;
    double loss = 0;
    const bool whole = std::sscanf(line.c_str(), "step %d: loss %lf%n", &step, &loss, &read) == 2 &&
                       static_cast<size_t>(read) == line.size();
    EXPECT_TRUE(whole) << line;
    losses[step] = loss;
  }
  return losses;
}

// After 20 steps of two lines, and with no other end than 0.
void expect_learnt(const Result& result, double loss) {
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto losses = losses_of(result.out);
  ASSERT_EQ(losses.size(), 2u) << result.out << result.err;
  EXPECT_LT(losses.at(20), losses.at(10));
  EXPECT_LT(losses.at(20), loss);
  EXPECT_GT(losses.at(20), 0);
}

constexpr double kLearnt = 1.5;  // ten digits, guessed: 2.3

TEST(Examples, OneProcessAndManyLearnTheSame) {
  const Result single = example("single_process", {"20"});
  expect_learnt(single, kLearnt);
  const Result one = example("data_parallel", {"20"});
  expect_learnt(one, kLearnt);
  for (const int step : {10, 20}) {
    EXPECT_NEAR(losses_of(one.out).at(step), losses_of(single.out).at(step), 5e-3) << "one batch in four lanes";
  }
  for (const int ranks : {2, 4}) {
    const Result several = example_on(ranks, "data_parallel", {"20"});
    EXPECT_EQ(several.exit_code, 0) << several.err;
    EXPECT_EQ(several.out, one.out) << ranks << " ranks";
  }
}

TEST(Examples, APipelineLearnsTheSameOnAnyNumberOfRanks) {
  const Result one = example("pipeline", {"20"});
  expect_learnt(one, 2.0);
  for (const int ranks : {2, 4}) {
    const Result several = example_on(ranks, "pipeline", {"20"});
    EXPECT_EQ(several.exit_code, 0) << several.err;
    EXPECT_EQ(several.out, one.out) << ranks << " ranks";
  }
}

void expect_close(const std::string& losses, const std::string& expected) {
  const auto of_one = losses_of(expected), of_many = losses_of(losses);
  ASSERT_EQ(of_many.size(), of_one.size()) << losses;
  for (const auto& [step, loss] : of_one) EXPECT_NEAR(of_many.at(step), loss, 1e-5 * loss) << step;
}

TEST(Examples, DividedLayersLearnTheSameOnAnyNumberOfRanks) {
  const Result one = example("tensor_parallel", {"20"});
  expect_learnt(one, 2.0);
  for (const int ranks : {2, 4}) {
    const Result several = example_on(ranks, "tensor_parallel", {"20"});
    EXPECT_EQ(several.exit_code, 0) << several.err;
    expect_close(several.out, one.out);
  }
}

TEST(Examples, HeadsOnRanksOfTheirOwnLearnTheSame) {
  const Result one = example("branches", {"20"});
  expect_learnt(one, 3.0);
  for (const int ranks : {2, 4}) {
    const Result several = example_on(ranks, "branches", {"20"});
    EXPECT_EQ(several.exit_code, 0) << several.err;
    expect_close(several.out, one.out);
  }
}

TEST(Examples, AnyNumberOfReplicasLearnsTheSame) {
  const Result one = example("replicas", {"20", "1"});
  expect_learnt(one, 2.0);
  for (const char* replicas : {"2", "3", "8"}) expect_close(example("replicas", {"20", replicas}).out, one.out);
}

// Ranks over Gloo, on a host each.
TEST(Examples, StagesDividedLayersAndBranchesOnTwoHosts) {
  const std::string why = why_no_hosts();
  if (!why.empty()) GTEST_SKIP() << "no network namespaces here: " << why;
  const Hosts hosts(2);
  const auto on_both = [&](const std::string& name) {
    std::vector<std::unique_ptr<Program>> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.push_back(hosts.start(
          rank, {"/usr/bin/env", "RANK=" + std::to_string(rank), "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1",
                 "MASTER_ADDR=" + hosts.address(0), "MASTER_PORT=29500", bin_folder() + "/example_" + name, "40"}));
    }
    const Result first = ranks[0]->wait(), second = ranks[1]->wait();
    EXPECT_EQ(first.exit_code, 0) << first.err;
    EXPECT_EQ(second.exit_code, 0) << second.err;
    return first.out;
  };
  EXPECT_EQ(on_both("pipeline"), example("pipeline", {"40"}).out);
  for (const char* name : {"tensor_parallel", "branches"}) {
    expect_close(on_both(name), example(name, {"40"}).out);
  }
}

TEST(Examples, MixedPrecisionLearnsAtEveryLevel) {
  LOCKSTEP_LONG_TEST_IF(true);
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    SCOPED_TRACE(level);
    expect_learnt(example("mixed_precision", {"20", level, "fp16"}), kLearnt);
  }
  const Result one = example("mixed_precision", {"20"});
  for (const int ranks : {2, 4}) {
    const Result several = example_on(ranks, "mixed_precision", {"20"});
    expect_learnt(several, kLearnt);
    EXPECT_EQ(several.out, one.out) << ranks << " ranks";
  }
  EXPECT_EQ(example("mixed_precision", {"20", "O7"}).exit_code, 2);
}

TEST(Examples, SpawnedRanksLearn) { expect_learnt(example("spawn", {"20"}), 0.1); }

TEST(Examples, CollectivesDoWhatTheirLinesSay) {
  const std::vector<std::pair<int, const char*>> expected = {
      {1,
       "all_reduce: 1 1 \nbroadcast: 0 0 \nall_gather: 0 \nreduce_scatter: 0 \nall_to_all: 0 \nring: 0 \nsplit: 0 \n"},
      {2,
       "all_reduce: 3 3 \nbroadcast: 0 0 \nall_gather: 0 1 \nreduce_scatter: 0 2 \nall_to_all: 0 1 \nring: 1 \n"
       "split: 0 \n"},
      {4,
       "all_reduce: 10 10 \nbroadcast: 0 0 \nall_gather: 0 1 4 9 \nreduce_scatter: 0 4 8 12 \nall_to_all: 0 1 2 3 \n"
       "ring: 3 \nsplit: 2 \n"}};
  for (const auto& [ranks, lines] : expected) {
    const Result result = example_on(ranks, "collectives");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, lines + std::string("once: by rank 0, while the others wait\n")) << ranks << " ranks";
  }
}

TEST(Examples, TheGanHasTheSameBitsAtAnyWorldSize) {
  const std::string program = bin_folder() + "/example_gan";
  const Result one = Program({.command = {program, "20"}}).wait();
  EXPECT_EQ(one.exit_code, 0) << one.err;
  double at_10 = 0, at_20 = 0;  // of the discriminator, whose guesses cost 2 ln 2
  ASSERT_EQ(std::sscanf(one.out.c_str(), "step 10: loss %lf and %*f step 20: loss %lf", &at_10, &at_20), 2) << one.out;
  EXPECT_LT(at_20, at_10);
  EXPECT_LT(at_20, 2 * std::log(2.0)) << "it tells digits from noise by now";
  EXPECT_THAT(one.out, HasSubstr("weights "));
  for (const char* ranks : {"2", "4"}) {
    const Result several = lockstep({"launch", "--nproc", ranks, program, "20"});
    EXPECT_EQ(several.exit_code, 0) << several.err;
    EXPECT_EQ(several.out, one.out) << ranks << " ranks";
  }
}

// Three classes, each of a colour of its own, through random crops, flips and jitter, decoded by threads of each rank.
TEST(Examples, ImagesOfOnesOwnTrainWithTheSameBitsAtAnyWorldSize) {
  const TempDir dir;
  write_class_folders(dir / "pictures", 3, 12);
  const Words words = {dir / "pictures", "40"};
  const Result one = example("images", words);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("36 JPEGs of 3 classes in "));
  const size_t begin = one.out.find("step 10: "), end = one.out.find("right ");
  ASSERT_TRUE(begin < end && end < one.out.size()) << one.out;
  const auto losses = losses_of(one.out.substr(begin, end - begin));
  ASSERT_EQ(losses.size(), 4u) << one.out;
  EXPECT_LT(losses.at(40), 0.8 * losses.at(10));
  int right = 0;
  std::string hash(100, ' ');
  ASSERT_EQ(std::sscanf(one.out.c_str() + end, "right %d of 36, weights %99s", &right, hash.data()), 2) << one.out;
  EXPECT_GT(right, 24) << "guessed: 12";
  EXPECT_EQ(hash.find('\0'), 64u) << one.out;
  for (const int ranks : {2, 4}) {
    const Result several = example_on(ranks, "images", words);
    EXPECT_EQ(several.exit_code, 0) << several.err;
    EXPECT_EQ(several.out, one.out) << ranks << " ranks";
  }
}

TEST(Examples, ImagesOfOnesOwnAreAskedFor) {
  const Result result = example("images");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("usage: example_images DIR"));
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  return text.substr(text.rfind('\n', end) + 1);
}

// Waits until a loop has saved a checkpoint of this step.
void wait_for(const std::string& file) {
  for (int i = 0; i < 2000 && !std::filesystem::exists(file); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(std::filesystem::exists(file)) << file;
}

constexpr auto kOwnLoop = "example_own_loo";  // Linux cuts the names of processes to 15 letters

TEST(Examples, ALoopOfOnesOwnIsKilledAndResumedOnOtherRanks) {
  LOCKSTEP_LONG_TEST_IF(true);
  const TempDir dir;
  const std::string program = bin_folder() + "/example_own_loop";
  const Result whole = Program({.command = {program, dir / "whole"}}).wait();
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_THAT(last_line(whole.out), ::testing::StartsWith("weights "));
  for (const char* folder : {"whole", "whole/checkpoints"}) {
    const Result newest = lockstep({"inspect", dir / folder});
    EXPECT_EQ(newest.exit_code, 0) << newest.err;
    const auto last = std::filesystem::canonical(dir / "whole/checkpoints/last.pt");
    EXPECT_THAT(newest.out, ::testing::StartsWith(dir / "whole/checkpoints/" + last.filename().string() + "\n"));
  }
  {
    const Program two(lockstep_command({"launch", "--nproc", "2", program, dir / "run"}));
    wait_for(dir / "run/checkpoints/step-000100.pt");
    const auto ranks = two.processes(kOwnLoop);
    ASSERT_EQ(ranks.size(), 2u);
    kill(ranks[1], SIGKILL);
    two.all_gone(std::chrono::seconds(10));
  }
  {
    const Program four(lockstep_command({"launch", "--nproc", "4", program, dir / "run"}));
    wait_for(dir / "run/checkpoints/step-000250.pt");
    for (const pid_t rank : four.processes(kOwnLoop)) kill(rank, SIGKILL);
  }
  const Result last = lockstep({"launch", "--nproc", "2", program, dir / "run"});
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_THAT(last.out, ::testing::StartsWith("resumed at step "));
  EXPECT_EQ(last_line(last.out), last_line(whole.out));
  const Result longer = Program({.command = {program, dir / "whole", "2000"}}).wait();
  EXPECT_EQ(longer.exit_code, 2);
  EXPECT_THAT(longer.err, ::testing::HasSubstr("t_max was 1000, and is 2000 in this loop"));
}

}  // namespace
}  // namespace lockstep::e2e
