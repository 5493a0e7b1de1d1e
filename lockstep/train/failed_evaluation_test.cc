// A run whose evaluation fails: a damaged file among those to test on, say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/testing/only_world.h"
#include "lockstep/train/testing/tiny_recipe.h"
#include "lockstep/train/trainer.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

// Evaluates as often as it says, the trial before the run included.
struct Failing : testing_support::TinyRecipe {
  explicit Failing(int evaluations) : left(evaluations) {}
  std::vector<double> measure(const at::Tensor& output, const data::Batch& batch) const override {
    if (left-- <= 0) throw DataError("val/cats/7.jpg: a damaged JPEG");
    return TinyRecipe::measure(output, batch);
  }
  mutable int left;
};

class FailedEvaluation : public testing::Test {
 protected:
  FailedEvaluation() { fs::create_directories(run_ + "/checkpoints"); }

  int train(TrainOptions options, const std::shared_ptr<Recipe>& recipe) {
    options.recipe = "tiny";
    options.out = run_;
    options.optimizer.ema = 0.9;  // an evaluation has the averages in place of the weights
    const auto quiet = [](const std::string&) {};
    Trainer trainer(
        set_up(options, recipe, testing_support::only_world()), {.seconds_between = 1e9}, quiet, [] { return false; },
        Logger({.level = LogLevel::kError, .prefix = "", .color = false}, quiet));
    return trainer.run();
  }
  std::string weights() const {
    return nlohmann::json::parse(std::ifstream(run_ + "/final.json")).at("weights_sha256").get<std::string>();
  }

  lockstep::testing_support::TempDir dir_;
  std::string run_ = dir_ / "run";
};

TEST_F(FailedEvaluation, LosesNoStepBeforeIt) {
  EXPECT_THROW(train({}, std::make_shared<Failing>(1)), DataError);
  EXPECT_TRUE(fs::exists(run_ + "/checkpoints/step-000013.pt")) << "an epoch's";
  TrainOptions resumed;
  resumed.resume = run_;
  EXPECT_EQ(train(resumed, std::make_shared<testing_support::TinyRecipe>()), 0);
  const std::string after = weights();
  fs::remove_all(run_);
  fs::create_directories(run_ + "/checkpoints");
  EXPECT_EQ(train({}, std::make_shared<testing_support::TinyRecipe>()), 0);
  EXPECT_EQ(after, weights());
}

// Whose rate hangs on the evaluation that is not there.
TEST_F(FailedEvaluation, OfAPlateauScheduleIsNotPassedOver) {
  TrainOptions options;
  options.rate.schedule = "plateau";
  EXPECT_THROW(train(options, std::make_shared<Failing>(1)), DataError);
  EXPECT_FALSE(fs::exists(run_ + "/checkpoints/step-000013.pt"));
}

}  // namespace
}  // namespace lockstep::train
