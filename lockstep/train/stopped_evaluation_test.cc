// A run that is asked to stop while it evaluates.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lockstep/train/setup.h"
#include "lockstep/train/testing/only_world.h"
#include "lockstep/train/testing/tiny_recipe.h"
#include "lockstep/train/trainer.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

class StoppedEvaluationTest : public testing::Test {
 protected:
  void SetUp() override { begin_anew(); }
  void TearDown() override { fs::remove_all(folder_); }

  void begin_anew() const {
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/checkpoints");
  }
  // Trains, and asks to stop at the call of this number; resumes the run if it stops. Returns the number of calls.
  int train(int stop_at) {
    TrainOptions options;
    options.recipe = "tiny";
    options.out = folder_;
    options.steps = 9;
    options.rate.schedule = "plateau";
    options.eval_every = Interval{3, Interval::Unit::kSteps};
    int asked = 0;
    const int code = run(options, [&] { return ++asked == stop_at; });
    options.resume = folder_;
    if (code == kExitStoppedOnRequest) {
      EXPECT_TRUE(fs::exists(folder_ + "/checkpoints/INTERRUPTED.pt"));
      EXPECT_EQ(run(options, [] { return false; }), 0);
    }
    return asked;
  }
  int run(const TrainOptions& options, const Trainer::StopAsked& stop_asked) {
    Trainer trainer(
        set_up(options, std::make_shared<testing_support::TinyRecipe>(), testing_support::only_world()),
        {.seconds_between = 1e9}, [](const std::string&) {}, stop_asked, log_);
    return trainer.run();
  }
  std::vector<nlohmann::json> evaluations() const {
    std::vector<nlohmann::json> found;
    std::ifstream file(folder_ + "/metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      auto record = nlohmann::json::parse(line);
      if (record["kind"] != "eval") continue;
      record.erase("time");
      found.push_back(record);
    }
    return found;
  }
  nlohmann::json weights() const {
    return nlohmann::json::parse(std::ifstream(folder_ + "/final.json")).at("weights_sha256");
  }

  std::string folder_ = testing::TempDir() + "stopped-evaluation." + std::to_string(getpid());
  Logger log_{{}, [](const std::string&) {}};
};

// Each call is a place where a signal may come. The schedule goes by the metrics, so an evaluation that a resume left
// out would show in the weights.
TEST_F(StoppedEvaluationTest, IsMadeByTheRunThatGoesOn) {
  const int calls = train(/*stop_at=*/0);
  const auto whole = weights();
  const auto evaluated = evaluations();
  EXPECT_EQ(calls, 9 + 3) << "steps, and evaluations of one chunk";
  for (int stop_at = 1; stop_at <= calls; ++stop_at) {
    begin_anew();
    train(stop_at);
    EXPECT_EQ(weights(), whole) << stop_at;
    EXPECT_EQ(evaluations(), evaluated) << stop_at;
  }
}

}  // namespace
}  // namespace lockstep::train
