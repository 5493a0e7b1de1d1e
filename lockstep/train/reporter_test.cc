#include "lockstep/train/reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/train/testing/only_world.h"
#include "lockstep/train/testing/tiny_recipe.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

class ReporterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    parts_.recipe = std::make_shared<testing_support::TinyRecipe>();
    parts_.world = testing_support::only_world();
    parts_.model = parts_.recipe->make_model(1, testing_support::Blobs(1));
    parts_.mixed = std::make_unique<amp::MixedPrecision>(std::vector<torch::nn::Module*>{parts_.model.module.get()},
                                                         std::vector<optim::OptimizerRef>{},
                                                         amp::Options{.opt_level = amp::OptLevel::kO0});
    parts_.data.train = std::make_shared<testing_support::Blobs>(100);
    parts_.plan.steps_per_epoch = 10;
    parts_.plan.total_steps = 20;
    parts_.plan.epochs = 2;
    parts_.files.folder = folder_;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Reporter make() {
    return Reporter(parts_, {.seconds_between = 1e9}, [this](const std::string& text) { shown_ += text; });
  }
  std::vector<nlohmann::json> records() const {
    std::vector<nlohmann::json> all;
    std::ifstream file(parts_.files.metrics());
    for (std::string line; std::getline(file, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }

  std::string folder_ = ::testing::TempDir() + "reporter." + std::to_string(getpid());
  std::string shown_;
  Parts parts_;
};

TEST_F(ReporterTest, AStepIsARecordAndOnTheBoard) {
  Reporter reporter = make();
  parts_.state.step = 10;
  reporter.begin_step();
  EXPECT_EQ(parts_.world->self().step.load(), 11u) << "the step being computed, from 1";
  parts_.state.step = 11;
  reporter.step({.loss = 0.5, .lr = 0.1, .gradient_norm = 2, .samples = 8, .seconds = 0.5, .data_seconds = 0.125});
  ASSERT_EQ(records().size(), 1u);
  const auto record = records()[0];
  EXPECT_EQ(record["kind"], "train");
  EXPECT_EQ(record["step"], 11);
  EXPECT_EQ(record["epoch"], 2);
  EXPECT_EQ(record["loss"], 0.5);
  EXPECT_FALSE(record.contains("skipped"));
  EXPECT_EQ(record["seconds"], 0.5);
  EXPECT_EQ(record["data_seconds"], 0.125);
  EXPECT_EQ(record["samples_per_second"], 16);
  EXPECT_NEAR(record["time"].get<double>(), static_cast<double>(::time(nullptr)), 60);
}

TEST_F(ReporterTest, TheTimesOfReadingAreInTheRecordWhereTheyAreKnown) {
  Reporter reporter = make();
  parts_.state.step = 1;
  reporter.step(
      {.samples = 8,
       .seconds = 0.5,
       .data_seconds = 0.25,
       .input = {.wait = 0.125, .read = {.read_ns = 1'700, .decode_ns = 2'000'000'000, .transform_ns = 250'000'000}}});
  parts_.state.step = 2;
  reporter.step({.samples = 8, .seconds = 0.5, .data_seconds = 0.25, .input = {.wait = 0.125}});
  const nlohmann::json times = {{"wait", 0.125}, {"read", 2e-6}, {"decode", 2.0}, {"transform", 0.25}};
  EXPECT_EQ(records()[0]["data"], times);
  EXPECT_FALSE(records()[1].contains("data")) << "data in memory";
}

TEST_F(ReporterTest, TheEndSaysThatTrainingWaitedForData) {
  Reporter reporter = make();
  reporter.step({.samples = 8, .seconds = 100});
  for (int i = 0; i < 4; ++i) reporter.step({.samples = 8, .seconds = 1, .input = {.wait = 0.41}});
  parts_.options.quiet = true;
  parts_.workers = 256;
  reporter.done({.samples = 50}, std::string(64, 'a'), "");
  EXPECT_THAT(shown_, ::testing::EndsWith(
                          "\ninput-bound: 41 % waiting for data; no core is left for more --workers (now 256)\n"));
}

TEST_F(ReporterTest, TheEndOfARunThatDidNotWaitSaysNothingOfData) {
  Reporter reporter = make();
  for (int i = 0; i < 40; ++i) reporter.step({.samples = 8, .seconds = 1, .input = {.wait = 0.0625}});
  reporter.done({.samples = 50}, std::string(64, 'a'), "");
  EXPECT_THAT(shown_, ::testing::Not(HasSubstr("input-bound")));
}

TEST_F(ReporterTest, ARecipesOptionMayHaveTheNameOfAResult) {
  struct Timed : testing_support::TinyRecipe {
    int seconds = 7;
    void declare(config::OptionSet& options) override {
      options.number("seconds", "N", "how long", &seconds, 1, 9, config::Effect::kTrajectory);
    }
  };
  parts_.recipe = std::make_shared<Timed>();
  make().done({.samples = 50}, std::string(64, 'a'), "");
  std::ifstream file(folder_ + "/final.json");
  const auto final = nlohmann::json::parse(file);
  EXPECT_EQ(final.at("seconds_option"), "7");
  EXPECT_TRUE(final.at("seconds").is_number());
}

TEST_F(ReporterTest, AFolderThatWasReplacedEndsTheRunAtTheNextWrite) {
  Reporter reporter = make();
  std::filesystem::remove_all(folder_);
  EXPECT_THROW(reporter.step({.samples = 8, .seconds = 0.5}), IoError);
  std::filesystem::create_directories(folder_);
  EXPECT_THROW(reporter.step({.samples = 8, .seconds = 0.5}), IoError);
  EXPECT_THROW(reporter.evaluation({.metrics = {{"accuracy", 1}}}, /*of_test_data=*/true, /*is_best=*/false), IoError);
  EXPECT_THROW(reporter.done({.metrics = {{"accuracy", 1}}}, "aa", ""), IoError);
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "another's folder is left alone";
}

TEST_F(ReporterTest, AStopNamesTheCommandThatGoesOn) {
  parts_.resume_command = "my_program train tiny --resume runs/tiny-1 --steps 30";
  Reporter reporter = make();
  reporter.stopped();
  EXPECT_THAT(shown_, HasSubstr("; go on with: my_program train tiny --resume runs/tiny-1 --steps 30"));
}

TEST_F(ReporterTest, ASkippedStepNamesItsOverflow) {
  Reporter reporter = make();
  parts_.state.step = 1;
  reporter.step({.overflow = "conv1.weight", .samples = 8, .seconds = 0.5});
  EXPECT_EQ(records()[0]["skipped"], true);
  EXPECT_EQ(records()[0]["overflow"], "conv1.weight");
}

TEST_F(ReporterTest, AnEvaluationThatIsThereAlreadyIsShownAndNotWrittenAgain) {
  parts_.state.step = 10;
  parts_.evaluated = {"validation"};
  Reporter reporter = make();
  const Evaluation evaluation{.loss = 0.25, .samples = 50, .metrics = {{"accuracy", 0.5}}};
  reporter.evaluation(evaluation, /*of_test_data=*/false, /*is_best=*/false);
  EXPECT_TRUE(records().empty());
  EXPECT_THAT(shown_, HasSubstr("epoch 1, step 10: loss 0.25, accuracy 0.5000 on 50 validation samples\n"));
  reporter.evaluation(evaluation, /*of_test_data=*/true, /*is_best=*/false);
  ASSERT_EQ(records().size(), 1u) << "a run that was killed in its last evaluation";
  EXPECT_EQ(records()[0]["split"], "test");
  parts_.state.step = 20;
  reporter.evaluation(evaluation, /*of_test_data=*/true, /*is_best=*/true);
  EXPECT_EQ(records().size(), 2u);
  EXPECT_THAT(shown_, HasSubstr("epoch 2, step 20: loss 0.25, accuracy 0.5000 on 50 test samples, the best so far\n"));
}

TEST_F(ReporterTest, TheEndIsInFinalJson) {
  Reporter reporter = make();
  parts_.state.step = 20;
  reporter.step({.loss = 0.125, .samples = 8, .seconds = 2});
  reporter.done({.loss = 0.5, .samples = 50, .metrics = {{"accuracy", 1}}}, std::string(64, 'a'), "");
  const auto final = nlohmann::json::parse(std::ifstream(parts_.files.final_json()));
  EXPECT_EQ(final["steps"], 20);
  EXPECT_EQ(final["train_loss"], 0.125);
  EXPECT_EQ(final["images_per_second"], 4);
  EXPECT_EQ(final["weights_sha256"], std::string(64, 'a'));
  EXPECT_FALSE(final.contains("ema_sha256"));
  EXPECT_THAT(shown_, HasSubstr("done: 20 steps"));
  EXPECT_THAT(shown_, HasSubstr("next: lockstep eval tiny --load " + folder_ + "/checkpoints/last.pt\n"))
      << "nothing was the best";
}

TEST_F(ReporterTest, ARunThatIsOnlyEndedHasTheLossOfItsLastStep) {
  parts_.state.step = 20;
  make().step({.loss = 0.125, .samples = 8, .seconds = 2});
  make().done({.loss = 0.5, .samples = 50, .metrics = {{"accuracy", 1}}}, std::string(64, 'a'), "");
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(parts_.files.final_json()))["train_loss"], 0.125);
}

TEST_F(ReporterTest, QuietRunsKeepTheLastLines) {
  parts_.options.quiet = true;
  parts_.program = "my_program";
  parts_.options.data.path = "digits";
  parts_.state.best = 0.5;
  std::filesystem::create_directories(parts_.files.checkpoints());
  std::ofstream(parts_.files.best()) << "";
  Reporter reporter = make();
  parts_.state.step = 20;
  reporter.say("epoch 2");
  reporter.evaluation({.loss = 0.25, .samples = 50}, /*of_test_data=*/true, /*is_best=*/true);
  EXPECT_EQ(shown_, "");
  reporter.done({.loss = 0.5, .samples = 50}, std::string(64, 'a'), "");
  EXPECT_THAT(shown_, ::testing::StartsWith("done: 20 steps in "));
  EXPECT_THAT(shown_, HasSubstr("\nbest: " + parts_.files.best() + ", highest accuracy 0.5000\n"));
  EXPECT_THAT(shown_,
              ::testing::EndsWith("\nnext: my_program eval tiny --load " + parts_.files.best() + " --data digits\n"));
}

}  // namespace
}  // namespace lockstep::train
