#include "lockstep/train/tracking.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/optim/held_gradient.h"
#include "lockstep/track/testing/read_events.h"
#include "lockstep/train/testing/tiny_parts.h"
#include "lockstep/train/testing/tiny_recipe.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using track::testing_support::SummaryValue;

struct MaskRecipe : testing_support::TinyRecipe {
  bool makes_masks() const override { return true; }
};

class TrackingTest : public ::testing::Test {
 protected:
  TrackingTest() : parts_(testing_support::parts_of(std::make_shared<MaskRecipe>())) {
    parts_.files.folder = dir_.path();
    parts_.plan.total_steps = 10;
    parts_.plan.eval_every = 4;
    parts_.options.track = {.csv = true, .tensorboard = true};
    parts_.state.origin.options = {{"lr", "0.5"}, {"sync-bn", "false"}, {"optimizer", "sgd"}, {"clip", ""}};
  }
  std::unique_ptr<Tracking> make() { return Tracking::of(parts_, log_); }
  // Of the newest event file.
  std::vector<SummaryValue> values() const {
    std::set<fs::path> files;
    for (const auto& each : fs::directory_iterator(parts_.files.folder)) {
      if (each.path().filename().string().starts_with("events.out.tfevents.")) files.insert(each.path());
    }
    return track::testing_support::summary_values(track::testing_support::read_events(files.rbegin()->string()));
  }
  std::vector<std::string> tags(const std::string& begin) const {
    std::vector<std::string> found;
    for (const SummaryValue& each : values()) {
      if (each.tag.starts_with(begin)) found.push_back(cat(each.tag, '@', each.step));
    }
    return found;
  }
  track::testing_support::Message histogram(const std::string& tag) const {
    for (const SummaryValue& each : values()) {
      if (each.tag == tag) return each.value.message(5);
    }
    throw std::runtime_error(tag + " is not there");
  }
  void set_gradients(const at::Tensor& value) const {
    for (at::Tensor parameter : parts_.model.module->parameters()) {
      parameter.mutable_grad() = value.expand_as(parameter).clone();
    }
  }

  lockstep::testing_support::TempDir dir_;
  Parts parts_;
  std::vector<std::string> warnings_;
  Logger log_{{.level = LogLevel::kInfo, .prefix = "", .color = false},
              [this](const std::string& line) { warnings_.push_back(line); }};
};

TEST_F(TrackingTest, NothingIsWrittenUnlessAskedFor) {
  parts_.options.track = {};
  EXPECT_EQ(make(), nullptr);
  parts_.options.track = {.csv = true};
  const auto tracking = make();
  set_gradients(at::ones({1}));
  tracking->gradients(10);
  tracking->weights(10);
  tracking->pictures("test");
  tracking->end();
  EXPECT_TRUE(fs::exists(parts_.files.metrics_csv()));
  EXPECT_FALSE(track::has_event_files(parts_.files.folder));
}

TEST_F(TrackingTest, HistogramsAreMadeAtEvaluations) {
  const auto tracking = make();
  set_gradients(at::ones({1}));
  for (int64_t step = 1; step <= 10; ++step) {
    tracking->gradients(step);
    tracking->weights(step);
  }
  EXPECT_THAT(tags("weights/bias"), ElementsAre("weights/bias@4", "weights/bias@8", "weights/bias@10"));
  EXPECT_THAT(tags("gradients/weight"), ElementsAre("gradients/weight@4", "gradients/weight@8", "gradients/weight@10"));
  EXPECT_EQ(histogram("weights/weight").real(3), 6) << "elements";
  EXPECT_NEAR(histogram("weights/weight").real(4), parts_.model.module->parameters()[0].sum().item<double>(), 1e-6);
  EXPECT_EQ(histogram("gradients/weight").real(4), 6);
}

TEST_F(TrackingTest, OrAsOftenAsTheUserSays) {
  for (const auto& [every, expected] : {std::pair{3, 3U}, {0, 0U}}) {
    parts_.options.histograms_every = every;
    const auto tracking = make();
    for (int64_t step = 1; step <= 10; ++step) tracking->weights(step);
    EXPECT_EQ(tags("weights/bias").size(), expected) << every;
  }
}

TEST_F(TrackingTest, TheLossScaleIsTakenOutOfGradients) {
  const auto tracking = make();
  set_gradients(at::full({1}, 1024.0f));
  for (const at::Tensor& parameter : parts_.model.module->parameters()) optim::hold_scaled(parameter.grad(), 512);
  tracking->gradients(4);
  tracking->weights(4);
  EXPECT_EQ(histogram("gradients/bias").real(2), 2) << "max";
}

TEST_F(TrackingTest, WhatIsNotFiniteHasNoHistogram) {
  const auto tracking = make();
  set_gradients(at::full({1}, std::numeric_limits<float>::infinity()));
  tracking->gradients(4);
  tracking->weights(4);
  EXPECT_THAT(tags("gradients/"), IsEmpty());
  EXPECT_EQ(tags("weights/").size(), 2u);
  EXPECT_THAT(tags("histograms/"), ElementsAre("histograms/left_out@4"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("step 4: no histogram of gradients/weight")));
  tracking->end();
  EXPECT_THAT(warnings_.back(), HasSubstr("2 histograms were left out"));
}

TEST_F(TrackingTest, PicturesAreOfTheFirstSamplesOfAnEvaluation) {
  const auto tracking = make();
  const data::Batch batch{{"data", at::rand({5, 1, 6, 8})}, {"target", at::zeros({5, 6, 8}, at::kLong)}};
  tracking->observe(batch, at::rand({5, 2, 6, 8}));
  tracking->observe(batch, at::rand({5, 2, 6, 8}));
  parts_.state.step = 4;
  tracking->pictures("test");
  tracking->pictures("test");
  EXPECT_THAT(tags("test/masks"), ElementsAre("test/masks/0@4", "test/masks/1@4", "test/masks/2@4", "test/masks/3@4"));
}

TEST_F(TrackingTest, OutputsThatAreNoMasksHaveNone) {
  const auto tracking = make();
  tracking->observe(data::Batch::of(at::rand({5, 2}), at::zeros({5}, at::kLong)), at::rand({5, 3}));
  tracking->pictures("test");
  EXPECT_THAT(tags("test/"), IsEmpty());
}

TEST_F(TrackingTest, TakesOverTheHistoryOfARunThatWasNotTracked) {
  std::ofstream(parts_.files.metrics()) << R"({"kind":"train","step":1,"loss":0.5})" << '\n'
                                        << R"({"kind":"train","step":2,"loss":0.25})" << '\n';
  parts_.state.step = 2;
  make();
  EXPECT_THAT(tags("train/"), ElementsAre("train/loss@1", "train/loss@2"));
  make();
  EXPECT_THAT(tags("train/"), IsEmpty()) << "the first file has it";
}

TEST_F(TrackingTest, OptionsAreHyperparametersAndAText) {
  make();
  EXPECT_THAT(tags("config"), ElementsAre("config@0"));
  EXPECT_THAT(tags("_hparams_/"), ElementsAre("_hparams_/experiment@0", "_hparams_/session_start_info@0"));
}

}  // namespace
}  // namespace lockstep::train
