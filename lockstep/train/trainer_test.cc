// A whole run in a world of one; several ranks: tests/e2e.
#include "lockstep/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/testing/only_world.h"
#include "lockstep/train/testing/tiny_recipe.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

class TrainerTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_ + "/checkpoints"); }
  void TearDown() override { fs::remove_all(folder_); }

  int train(
      TrainOptions options, const Trainer::StopAsked& stop_asked = [] { return false; }) {
    options.recipe = "tiny";
    if (options.out.empty()) options.out = folder_;
    Trainer trainer(
        set_up(options, recipe_, testing_support::only_world()), {.seconds_between = 1e9},
        [this](const std::string& text) { shown_ += text; }, stop_asked, log_);
    return trainer.run();
  }
  nlohmann::json final_json() const { return nlohmann::json::parse(std::ifstream(folder_ + "/final.json")); }
  std::vector<int64_t> trained_steps() const {
    std::vector<int64_t> steps;
    std::ifstream file(folder_ + "/metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      const auto record = nlohmann::json::parse(line);
      if (record["kind"] == "train") steps.push_back(record["step"]);
    }
    return steps;
  }

  std::string config() const {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/config.toml").rdbuf();
    return text.str();
  }

  std::shared_ptr<Recipe> recipe_ = std::make_shared<testing_support::TinyRecipe>();
  std::string folder_ = testing::TempDir() + "trainer." + std::to_string(getpid());
  std::string fork_ = folder_ + ".fork";
  std::string shown_;
  std::vector<std::string> warnings_;
  Logger log_{{.level = LogLevel::kInfo, .prefix = "", .color = false},
              [this](const std::string& line) { warnings_.push_back(line); }};
};

TEST_F(TrainerTest, RecordsWhatReadingABatchTook) {
  struct Timed final : testing_support::Blobs {
    using Blobs::Blobs;
    void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows,
              data::ReadStats& stats) const override {
      Blobs::read(index, draw, rows, stats);
      stats.decode_ns += 3'000;
    }
  };
  struct TimedRecipe : testing_support::TinyRecipe {
    data::Splits open_data(const DataRequest&) const override {
      return {std::make_shared<Timed>(100), std::make_shared<Timed>(50), nullptr};
    }
  };
  recipe_ = std::make_shared<TimedRecipe>();
  EXPECT_EQ(train({.steps = 3}), 0);
  std::ifstream file(folder_ + "/metrics.jsonl");
  std::string line;
  for (int step = 1; step <= 3; ++step) {
    const auto record = std::getline(file, line) ? nlohmann::json::parse(line) : nlohmann::json();
    ASSERT_EQ(record["kind"], "train");
    EXPECT_EQ(record["data"]["decode"], 24e-6) << "of 8 samples";
    EXPECT_GT(record["data"]["wait"], 0.0);
    EXPECT_LE(record["data"]["wait"], record["data_seconds"]);
  }
}

TEST_F(TrainerTest, LearnsAndWritesItsFiles) {
  EXPECT_EQ(train({}), 0);
  const auto final = final_json();
  EXPECT_EQ(final["steps"], 39);  // 3 epochs of 13 steps, the last of each with 4 samples
  EXPECT_GT(final["metrics"]["accuracy"].get<double>(), 0.9);
  EXPECT_EQ(final["weights_sha256"].get<std::string>().size(), 64u);
  EXPECT_EQ(trained_steps().size(), 39u);
  for (const char* file :
       {"/config.toml", "/checkpoints/last.pt", "/checkpoints/best.pt", "/checkpoints/step-000039.pt"}) {
    EXPECT_TRUE(fs::exists(folder_ + file)) << file;
  }
  EXPECT_THAT(shown_, testing::HasSubstr("done: 39 steps"));
  EXPECT_THAT(shown_, testing::HasSubstr("\nbest: " + folder_ + "/checkpoints/best.pt, highest accuracy "));
  EXPECT_THAT(shown_, testing::HasSubstr(", the best so far\n"));
}

// As the launcher, metrics.jsonl and checkpoints number it.
TEST_F(TrainerTest, AnErrorInALaneCountsStepsFromOne) {
  struct Torn : testing_support::TinyRecipe {
    at::Tensor loss(const at::Tensor& output, const data::Batch& batch) const override {
      if (output.requires_grad() && ++calls == 3) throw ConfigError("torn");
      return TinyRecipe::loss(output, batch);
    }
    mutable int calls = 0;
  };
  recipe_ = std::make_shared<Torn>();
  EXPECT_EQ(lockstep::testing_support::refusal([&] { train({}); }), "step 3, lane 0: torn");
  EXPECT_EQ(trained_steps(), (std::vector<int64_t>{1, 2}));
}

struct ByError : testing_support::TinyRecipe {
  std::string best_by() const override { return "error"; }
  bool lower_is_better() const override { return true; }
  nlohmann::ordered_json metrics(const std::vector<double>& sums, int64_t samples) const override {
    return {{"error", 1 - sums[0] / static_cast<double>(samples)}};
  }
};

TEST_F(TrainerTest, LessMayBeBetterForTheBestForEarlyStoppingAndForAPlateau) {
  recipe_ = std::make_shared<ByError>();
  TrainOptions options;
  options.early_stop = 3;
  options.epochs = 100;
  options.rate.schedule = "plateau";
  options.rate.plateau_metric = "error";
  EXPECT_EQ(train(options), 0);
  EXPECT_LT(final_json()["steps"], 1300);
  const auto root = checkpoint::read_pt(folder_ + "/checkpoints/last.pt");
  const double best = read_state(root, "last.pt").best;
  EXPECT_LT(best, 0.1);
  EXPECT_EQ(checkpoint::ValueView(root, "last.pt")["scheduler"]["mode"].text(), "min");
  EXPECT_THAT(shown_,
              testing::HasSubstr("checkpoints/best.pt, lowest error " + text_of(nlohmann::ordered_json(best)) + '\n'));

  recipe_ = std::make_shared<testing_support::TinyRecipe>();
  options.resume = folder_;
  options.rate.plateau_metric = "accuracy";
  EXPECT_THAT(lockstep::testing_support::refusal([&] { train(options); }),
              testing::HasSubstr("its best.pt goes by error, less is better; the recipe's goes by accuracy, more is"));
}

struct NamedBadly : testing_support::TinyRecipe {
  std::string best_by() const override { return "acuracy"; }
};

TEST_F(TrainerTest, ARecipeWhoseBestMetricIsNoneDoesNotBegin) {
  recipe_ = std::make_shared<NamedBadly>();
  EXPECT_THROW(train({}), ConfigError);
  EXPECT_FALSE(fs::exists(folder_ + "/config.toml"));
}

TEST_F(TrainerTest, AStoppedRunGoesOnToTheSameWeights) {
  train({});
  const auto whole = final_json();
  for (const int stop_at : {1, 13, 14, 20}) {  // 14: in the evaluation after the first epoch
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/checkpoints");
    int asked = 0;
    EXPECT_EQ(train({}, [&] { return ++asked == stop_at; }), kExitStoppedOnRequest);
    EXPECT_TRUE(fs::exists(folder_ + "/checkpoints/INTERRUPTED.pt"));
    EXPECT_FALSE(fs::exists(folder_ + "/final.json"));
    TrainOptions options;
    options.resume = folder_;
    EXPECT_EQ(train(options), 0);
    EXPECT_EQ(final_json()["weights_sha256"], whole["weights_sha256"]) << "stopped at step " << stop_at;
    EXPECT_EQ(final_json()["metrics"], whole["metrics"]);
    EXPECT_EQ(trained_steps().size(), 39u) << "every step once";
    EXPECT_FALSE(fs::exists(folder_ + "/checkpoints/INTERRUPTED.pt"));
  }
}

TEST_F(TrainerTest, AForkEndsWithTheSameWeightsAndLeavesItsParentAsItIs) {
  TrainOptions options;
  options.save_every = Interval{13, Interval::Unit::kSteps};
  options.keep = 9;
  train(options);
  const auto whole = final_json();
  const auto steps = trained_steps();
  std::swap(folder_, fork_);
  fs::create_directories(folder_ + "/checkpoints");
  options.resume = fork_ + "/checkpoints/step-000013.pt";
  options.steps = 26;
  EXPECT_EQ(train(options), 0);
  EXPECT_EQ(trained_steps().size(), 26u) << "its history is whole";
  EXPECT_THAT(config(), testing::HasSubstr("parent = '" + *options.resume + "'\n"));
  options.resume = folder_;
  options.steps.reset();
  options.parent = *options.resume;  // as the command recalls it
  EXPECT_EQ(train(options), 0);
  EXPECT_EQ(final_json()["weights_sha256"], whole["weights_sha256"]);
  EXPECT_THAT(config(), testing::HasSubstr("parent = ")) << "it stays a fork";
  std::swap(folder_, fork_);
  EXPECT_EQ(final_json(), whole);
  EXPECT_EQ(trained_steps(), steps);
  for (const char* file : {"step-000013.pt", "step-000039.pt", "last.pt", "best.pt"}) {
    EXPECT_TRUE(fs::exists(folder_ + "/checkpoints/" + file)) << file;
  }
  fs::remove_all(fork_);
}

TEST_F(TrainerTest, WithoutItsLastBatchAnEpochIsAStepShorter) {
  TrainOptions options;
  options.data.drop_last = true;
  EXPECT_EQ(train(options), 0);
  EXPECT_EQ(final_json()["steps"], 36);  // 3 epochs of 12 steps
  const auto root = checkpoint::read_pt(folder_ + "/checkpoints/last.pt");
  EXPECT_EQ(checkpoint::ValueView(root, "last.pt")["sampler"]["drop_last"].integer(), 1);
  TrainOptions resumed;
  resumed.resume = folder_;
  EXPECT_THAT(lockstep::testing_support::refusal([&] { train(resumed); }), testing::HasSubstr("--drop-last"));
}

TEST_F(TrainerTest, AnExtendedRunThatIsKilledAtItsEndIsFinishedByTheResume) {
  TrainOptions options;
  options.steps = 5;
  train(options);
  const auto of_5 = final_json();
  options.resume = folder_;
  options.steps = 7;
  train(options);
  const auto of_7 = final_json();
  std::ofstream(folder_ + "/final.json") << of_5.dump();  // as it is until the very end
  train(options);
  EXPECT_EQ(final_json()["steps"], 7);
  EXPECT_EQ(final_json()["weights_sha256"], of_7["weights_sha256"]);
  const std::string before = config();
  options.rate.lr = 0.25;
  train(options);
  EXPECT_THAT(shown_, testing::HasSubstr("nothing left to do: 7 of 7 steps"));
  EXPECT_EQ(config(), before) << "it says what the run was";
}

// A fork's folder that has a checkpoint has its config.toml, too, whenever the run is killed.
TEST_F(TrainerTest, AForkSaysWhatItIsBeforeItHasACheckpoint) {
  TrainOptions options;
  options.steps = 5;
  train(options);
  std::swap(folder_, fork_);
  fs::create_directories(folder_ + "/config.toml/in the way");
  options.resume = fork_ + "/checkpoints/step-000005.pt";
  EXPECT_THROW(train(options), IoError);
  EXPECT_FALSE(fs::exists(folder_ + "/checkpoints/step-000005.pt"));
  fs::remove_all(fork_);
}

TEST_F(TrainerTest, ItsConfigIsTheResolvedRun) {
  TrainOptions options;
  options.steps = 5;
  options.data.path = "some/data";
  train(options);
  for (const char* line : {"epochs = 3\n", "lr = 0.5\n", "batch-size = 8\n", "optimizer = 'sgd'\n", "momentum = 0.9\n",
                           "schedule = 'constant'\n", "warmup = 0\n", "channels-last = 'off'\n", "lanes = 1\n",
                           "eval-every = '1epochs'\n", "steps = 5\n"}) {
    EXPECT_THAT(config(), testing::HasSubstr(line));
  }
  EXPECT_THAT(config(), testing::HasSubstr("data = '" + fs::absolute("some/data").string() + "'\n"));
  EXPECT_THAT(config(), testing::Not(testing::HasSubstr("threads = 0\n")));
}

// The header announces the change, so the optimizer's state of the checkpoint must not undo it.
TEST_F(TrainerTest, AResumedRunTakesItsOwnOptionsOfTheOptimizer) {
  const auto hash_with = [&](const std::function<void(optim::OptimizerOptions&)>& change) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/checkpoints");
    int asked = 0;
    EXPECT_EQ(train({}, [&] { return ++asked == 10; }), kExitStoppedOnRequest);
    TrainOptions options;
    options.resume = folder_;
    change(options.optimizer);
    EXPECT_EQ(train(options), 0);
    return final_json()["weights_sha256"].get<std::string>();
  };
  const std::string same = hash_with([](auto&) {});
  EXPECT_NE(hash_with([](auto& options) { options.weight_decay = 0.5; }), same);
  EXPECT_NE(hash_with([](auto& options) { options.momentum = 0.5; }), same);
}

// A process that is killed between the two: the checkpoint is there, and best.pt still points to an older one.
TEST_F(TrainerTest, AKilledSaveOfTheBestIsLinkedByTheResume) {
  TrainOptions options;
  options.steps = 5;
  options.eval_every = options.save_every = Interval{5, Interval::Unit::kSteps};
  EXPECT_EQ(train(options), 0);
  const fs::path best = folder_ + "/checkpoints/best.pt";
  EXPECT_EQ(fs::read_symlink(best), "step-000005.pt");
  fs::remove(best);
  options.recipe = "tiny";
  options.out = folder_;
  options.resume = folder_;
  set_up(options, std::make_shared<testing_support::TinyRecipe>(), testing_support::only_world());
  EXPECT_EQ(fs::read_symlink(best), "step-000005.pt");
}

TEST_F(TrainerTest, StopsEarlyWhereTheMetricNoLongerImproves) {
  TrainOptions options;
  options.epochs = 100;
  options.early_stop = 3;
  options.eval_every = options.save_every = Interval{4, Interval::Unit::kSteps};
  EXPECT_EQ(train(options), 0);
  const auto whole = final_json();
  const auto steps = whole["steps"].get<int64_t>();
  EXPECT_LT(steps, 500);
  EXPECT_THAT(shown_,
              testing::HasSubstr(cat("stopped early at step ", steps, ": no better accuracy for 3 evaluations")));
  options.resume = folder_;
  EXPECT_EQ(train(options), 0);
  EXPECT_THAT(shown_, testing::HasSubstr("raise --early-stop"));

  // A run that is stopped between two evaluations counts on.
  fs::remove_all(folder_);
  fs::create_directories(folder_ + "/checkpoints");
  options.resume.reset();
  int64_t asked = 0;
  EXPECT_EQ(train(options, [&] { return ++asked == steps - 2; }), kExitStoppedOnRequest);
  options.resume = folder_;
  EXPECT_EQ(train(options), 0);
  EXPECT_EQ(final_json()["steps"], steps);
  EXPECT_EQ(final_json()["weights_sha256"], whole["weights_sha256"]);
}

TEST_F(TrainerTest, ACheckpointKnowsTheBestSoFar) {
  TrainOptions options;
  options.eval_every = options.save_every = Interval{5, Interval::Unit::kSteps};
  train(options);
  double best = 0;
  std::ifstream file(folder_ + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record["kind"] == "eval") best = std::max(best, record["accuracy"].get<double>());
  }
  const auto state = read_state(checkpoint::read_pt(folder_ + "/checkpoints/last.pt"), "last.pt");
  EXPECT_EQ(state.best, best);
}

TEST_F(TrainerTest, WhatReductionTookIsInTheMetrics) {
  train({});
  int logged = 0;
  std::ifstream file(folder_ + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record["kind"] != "comm") continue;
    ++logged;
    EXPECT_EQ(record["step"], 10);
    EXPECT_EQ(record["bytes"], (2 * 3 + 3) * 4);
    EXPECT_EQ(record["buckets"].size(), 1u);
    EXPECT_EQ(record["buckets"][0]["label"], "bucket 1/1 (bias …)");
    EXPECT_LE(record["waited_ms"], record["in_flight_ms"].get<double>() + 1);
  }
  EXPECT_EQ(logged, 1);
}

TEST_F(TrainerTest, AnExplodingRunIsWarnedOfOrStopped) {
  TrainOptions options;
  options.rate.lr = 1e38;
  EXPECT_EQ(train(options), 0);
  ASSERT_FALSE(warnings_.empty());
  EXPECT_THAT(warnings_[0], testing::HasSubstr("is not finite"));
  EXPECT_LE(warnings_.size(), 2u) << "the second has the count";
  fs::remove_all(folder_);
  fs::create_directories(folder_ + "/checkpoints");
  options.on_nan = OnNan::kStop;
  EXPECT_THROW(train(options), DataError);
}

TEST_F(TrainerTest, DetectAnomalyNamesTheLayer) {
  TrainOptions options;
  options.detect_anomaly = true;
  EXPECT_EQ(train(options), 0);
  const auto hash = final_json()["weights_sha256"];
  fs::remove_all(folder_);
  fs::create_directories(folder_ + "/checkpoints");
  EXPECT_EQ(train({}), 0);
  EXPECT_EQ(final_json()["weights_sha256"], hash);  // to look is not to touch
  fs::remove_all(folder_);
  fs::create_directories(folder_ + "/checkpoints");
  options.rate.lr = 1e38;
  try {
    train(options);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), testing::MatchesRegex("step [0-9]+, rank 0, lane 0: the first value that is not finite "
                                                    "came from [a-z]+.* \\(aten::addmm\\); .*"));
  }
}

}  // namespace
}  // namespace lockstep::train
