#include "lockstep/train/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/train/inspection/ledger_check.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/testing/only_world.h"
#include "lockstep/train/testing/tiny_recipe.h"
#include "lockstep/train/trainer.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class LedgerTest : public testing::Test {
 protected:
  int train(
      TrainOptions options, const Trainer::StopAsked& stop_asked = [] { return false; }) {
    fs::create_directories(run_ + "/checkpoints");
    options.recipe = "tiny";
    options.out = run_;
    options.ledger = true;
    const auto quiet = [](const std::string&) {};
    Trainer trainer(set_up(options, std::make_shared<testing_support::TinyRecipe>(), testing_support::only_world()),
                    {.seconds_between = 1e9}, quiet, stop_asked,
                    Logger({.level = LogLevel::kError, .prefix = "", .color = false}, quiet));
    return trainer.run();
  }
  std::string file() const { return run_ + "/ledger/rank0.jsonl"; }
  std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> all;
    std::ifstream in(file());
    for (std::string line; std::getline(in, line);) all.push_back(nlohmann::json::parse(line, nullptr, false));
    return all;
  }

  lockstep::testing_support::TempDir dir_;
  std::string run_ = dir_ / "run";
};

TEST_F(LedgerTest, AStoppedRunHasItsStepsInTwoAttempts) {
  for (const int stop_at : {1, 13, 14, 20}) {  // 14: in the evaluation after the first epoch
    fs::remove_all(run_);
    int asked = 0;
    EXPECT_EQ(train({}, [&] { return ++asked == stop_at; }), kExitStoppedOnRequest);
    TrainOptions options;
    options.resume = run_;
    EXPECT_EQ(train(options), 0);
    EXPECT_THAT(check_ledger(run_ + "/ledger"), HasSubstr("39 steps of 2 attempts, in 3 epochs of "));
  }
}

TEST_F(LedgerTest, ALineSaysWhatAStepTrainsOn) {
  TrainOptions options;
  options.steps = 2;
  EXPECT_EQ(train(options), 0);
  const auto all = lines();
  ASSERT_GE(all.size(), 3u);
  EXPECT_EQ(all[0]["attempt"], 0);
  EXPECT_EQ(all[0]["ranks"], 1);
  EXPECT_EQ(all[0]["local_size"], 1);
  EXPECT_EQ(all[0]["after"], 0);
  EXPECT_EQ(all[1]["step"], 1);
  EXPECT_EQ(all[1]["first"], 0);
  EXPECT_EQ(all[1]["count"], all[0]["batch_size"]);
  EXPECT_EQ(all[1]["xxh3"].get<std::string>().size(), 16u);
}

// What another run has left, and half a line of a writer that was killed.
TEST_F(LedgerTest, ARunThatBeginsHasNoEarlierLinesAndOneThatGoesOnKeepsThem) {
  fs::create_directories(run_ + "/ledger");
  std::ofstream(file()) << "{\"attempt\":7,\"ranks\":9}\n";
  TrainOptions options;
  options.steps = 2;
  EXPECT_EQ(train(options), 0);
  EXPECT_EQ(lines().front()["attempt"], 0);
  std::ofstream(file(), std::ios::app) << "{\"attempt\":0,\"st";
  options.steps = 3;
  options.resume = run_;
  EXPECT_EQ(train(options), 0);
  EXPECT_EQ(lines().back()["attempt"], 1);
  EXPECT_THAT(check_ledger(run_ + "/ledger"), HasSubstr("3 steps of 2 attempts"));
}

// Of a node where nothing has removed what another run has left, as of a disk of its own.
TEST_F(LedgerTest, AForkHasNoLinesOfAnotherRun) {
  TrainOptions options;
  options.steps = 2;
  EXPECT_EQ(train(options), 0);
  const std::string parent = run_;
  run_ = dir_ / "fork";
  fs::create_directories(run_ + "/ledger");
  std::ofstream(run_ + "/ledger/rank3.jsonl") << "{\"attempt\":7,\"ranks\":9}\n";
  options.steps = 4;
  options.resume = parent;
  EXPECT_EQ(train(options), 0);
  EXPECT_EQ(lines().front()["attempt"], 0);
  EXPECT_EQ(lines().front()["after"], 2);
  EXPECT_FALSE(fs::exists(run_ + "/ledger/rank3.jsonl"));
  EXPECT_THAT(check_ledger(run_ + "/ledger"), HasSubstr("2 steps of 1 attempt"));
}

// A start that another rank alone has noted, lines that are none, and half a line.
TEST_F(LedgerTest, AttemptsAreCountedInAllFiles) {
  TrainOptions options;
  options.steps = 2;
  EXPECT_EQ(train(options), 0);
  std::ofstream(run_ + "/ledger/rank1.jsonl")
      << "{\"attempt\":1,\"rank\":1,\"ranks\":2}\n{\"attempt\":\"x\",\"ranks\":2}\n[\"ranks\"]\n{\"ra";
  options.steps = 3;
  options.resume = run_;
  EXPECT_EQ(train(options), 0);
  EXPECT_EQ(lines().back()["attempt"], 2);
}

}  // namespace
}  // namespace lockstep::train
