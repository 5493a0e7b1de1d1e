// A recipe that no line of the project knows (examples/own_recipe.cc) has what the project's own have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::HasSubstr;

std::string program() { return bin_folder() + "/example_own_recipe"; }

Result alone(const Words& words) { return Program({.command = Words{program()} + words}).wait(); }

Result on_two_ranks(const Words& words) { return lockstep(Words{"launch", "--nproc", "2", program()} + words); }

void expect_done(const Result& result) { EXPECT_EQ(result.exit_code, 0) << result.err; }

const Words kTrain = {"train", "spiral", "--turns", "1.5", "--lanes", "2", "--threads", "1"};

TEST(OwnRecipe, HasTheSameBitsAtAnyWorldSize) {
  const TempDir dir;
  expect_done(alone(kTrain + Words{"--nproc", "1", "--out", dir / "one"}));
  const auto two = on_two_ranks(kTrain + Words{"--out", dir / "two"});
  expect_done(two);
  EXPECT_THAT(two.out, HasSubstr("train spiral --turns 1.5 -> "));
  EXPECT_TRUE(outcome_of(dir / "one").contains("weights_sha256"));
  EXPECT_EQ(outcome_of(dir / "two"), outcome_of(dir / "one"));
  EXPECT_EQ(final_of(dir / "one").at("turns"), "1.5");
}

TEST(OwnRecipe, StartsItsRanksItself) {
  const TempDir dir;
  expect_done(alone(kTrain + Words{"--nproc", "1", "--out", dir / "one"}));
  const auto two = alone(kTrain + Words{"--nproc", "2", "--out", dir / "two"});
  expect_done(two);
  EXPECT_THAT(two.out, HasSubstr("ranks       2 (shm)"));
  EXPECT_EQ(outcome_of(dir / "two"), outcome_of(dir / "one"));
  const auto eval = alone({"eval", dir / "two", "--nproc", "2", "--json"});
  expect_done(eval);
  EXPECT_EQ(nlohmann::json::parse(eval.out).at("accuracy"), final_of(dir / "one").at("metrics").at("accuracy"));
}

TEST(OwnRecipe, AKilledRankOfItsOwnIsNamedWithTheProgramsCommand) {
  const TempDir dir;
  Program run({.command = Words{program()} + kTrain +
                          Words{"--nproc", "2", "--epochs", "100000", "--save-every", "1", "--max-restarts", "0",
                                "--out", dir / "run"}});
  ASSERT_TRUE(eventually([&] { return steps_logged(dir / "run").size() > 2; }));
  auto processes = run.processes("example_own_rec");  // the kernel cuts names
  ASSERT_EQ(processes.size(), 3u);
  kill(*std::max_element(processes.begin(), processes.end()), SIGKILL);
  const auto result = run.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_THAT(result.err, HasSubstr("example_own_recipe train spiral --resume " + (dir / "run")));
}

TEST(OwnRecipe, ChoosesARunsFolder) {
  const TempDir dir;
  const Words words = Words{"launch", "--nproc", "2", program()} + kTrain + Words{"--steps", "2"};
  expect_done(lockstep(words, dir.path()));
  expect_done(lockstep(words, dir.path()));
  EXPECT_EQ(final_of(dir / "runs/spiral-1").at("weights_sha256"), final_of(dir / "runs/spiral-2").at("weights_sha256"));
}

TEST(OwnRecipe, IsResumedWithItsOwnOptions) {
  const TempDir dir;
  expect_done(alone(kTrain + Words{"--out", dir / "whole"}));
  expect_done(on_two_ranks(kTrain + Words{"--out", dir / "run", "--steps", "20"}));
  EXPECT_THAT(read_file(dir / "run/config.toml"), HasSubstr("turns = 1.5\n"));
  const auto other = alone({"train", "spiral", "--turns", "2", "--resume", dir / "run"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("it was trained with --turns 1.5, this run has --turns 2"));
  expect_done(alone({"train", "spiral", "--resume", dir / "run"}));
  EXPECT_EQ(outcome_of(dir / "run"), outcome_of(dir / "whole"));
}

TEST(OwnRecipe, IsEvaluatedAsItsCheckpointSays) {
  const TempDir dir;
  expect_done(alone(kTrain + Words{"--out", dir / "run"}));
  const auto eval = alone({"eval", "spiral", "--load", dir / "run/checkpoints/last.pt", "--json"});
  expect_done(eval);
  const auto found = nlohmann::json::parse(eval.out, nullptr, /*allow_exceptions=*/false);
  const auto metrics = final_of(dir / "run").at("metrics");
  for (const auto& [name, value] : metrics.items()) EXPECT_EQ(found.at(name), value);
  const auto by_folder = alone({"eval", dir / "run", "--json"});
  expect_done(by_folder);
  EXPECT_EQ(nlohmann::json::parse(by_folder.out).at("loss"), found.at("loss"));
}

TEST(OwnRecipe, AStopNamesItsOwnProgram) {
  const TempDir dir;
  Program run({.command = Words{program()} + kTrain + Words{"--epochs", "100000", "--out", dir / "run"}});
  ASSERT_TRUE(eventually([&] { return !steps_logged(dir / "run").empty(); }));
  run.signal(SIGINT);
  const auto result = run.wait();
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_THAT(result.out, HasSubstr("go on with: example_own_recipe train spiral --resume " + (dir / "run")));
  EXPECT_THAT(result.out, HasSubstr("example_own_recipe train spiral --turns 1.5 -> "));
}

TEST(OwnRecipe, AFolderHoldsOneRun) {
  const TempDir dir;
  expect_done(alone(kTrain + Words{"--steps", "2", "--out", dir / "run"}));
  const std::string before = read_file(dir / "run/metrics.jsonl");
  const auto second = on_two_ranks(kTrain + Words{"--steps", "2", "--out", dir / "run"});
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_THAT(second.err, HasSubstr("already holds a run; go on with it by --resume"));
  EXPECT_EQ(read_file(dir / "run/metrics.jsonl"), before);
}

TEST(OwnRecipe, ItsFileAndMistakesAreRead) {
  const TempDir dir;
  write_file(dir / "spiral.toml", "recipe = 'spiral'\nturns = 2.5\nlanes = 2\nsteps = 3\n");
  const auto from_file = alone({"train", "--config", dir / "spiral.toml", "--out", dir / "run"});
  expect_done(from_file);
  EXPECT_THAT(from_file.out, HasSubstr("--turns 2.5"));
  EXPECT_THAT(alone({"train", "spiral", "--turn", "2"}).err, HasSubstr("did you mean --turns?"));
  EXPECT_THAT(alone({"train", "spiral", "--turns", "99"}).err,
              HasSubstr("--turns 99: expected a number from 0.1 to 10"));
  EXPECT_THAT(alone({"train", "sprial"}).err, HasSubstr("did you mean spiral?"));
}

TEST(OwnRecipe, WhatItsNetworkCantDoIsSaidInItsName) {
  const TempDir dir;
  expect_done(alone(kTrain + Words{"--steps", "2", "--out", dir / "run"}));
  const auto predicted = alone({"predict", dir / "run", "-i", dir / "run/config.toml"});
  EXPECT_EQ(predicted.exit_code, 2);
  EXPECT_THAT(predicted.err, HasSubstr("predict: the recipe spiral takes no files; example_own_recipe eval spiral "));
  const auto exported = alone({"export", dir / "run", dir / "spiral.onnx"});
  EXPECT_EQ(exported.exit_code, 2);
  EXPECT_THAT(exported.err, HasSubstr("the recipe spiral: its network doesn't begin with a convolution"));
  const auto drawn = alone({"eval", dir / "run", "--worst", "3", "--out", dir / "sheet.png"});
  EXPECT_EQ(drawn.exit_code, 2);
  EXPECT_THAT(drawn.err, HasSubstr("--worst: samples [2] are no images"));
}

TEST(OwnRecipe, HelpShowsItsOptions) {
  const auto help = alone({"train", "--help"});
  expect_done(help);
  EXPECT_THAT(help.out, HasSubstr("Recipe spiral:\n  --turns X"));
  EXPECT_THAT(help.out, HasSubstr("--batch-size N"));
}

}  // namespace
}  // namespace lockstep::e2e
