// The whole line of `lockstep predict`, with the recipes that it has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/base/testing/words_of.h"
#include "lockstep/recipes/options/recipe_options.h"
#include "lockstep/train/options/predict_command.h"

namespace lockstep::recipes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::TempDir;
using testing_support::words_of;

class PredictLine : public testing::Test {
 protected:
  PredictLine() {
    std::filesystem::create_directories(run_ + "/checkpoints");
    for (const auto& file : {lone_, image_, run_ + "/checkpoints/step-000002.pt"}) std::ofstream(file) << "x";
    std::ofstream(run_ + "/config.toml") << "recipe = 'unet'\nsize = 32\nexif = 'off'\n";
  }
  static std::string refused(const std::string& line) {
    return testing_support::refusal(
        [&] { train::PredictCommand("lockstep", describe_recipes()).read(words_of(line)); });
  }

  TempDir dir_;
  std::string lone_ = dir_ / "x.pt", run_ = dir_ / "run", image_ = dir_ / "x.png";
};

TEST_F(PredictLine, IsRead) {
  train::PredictCommand predict("lockstep", describe_recipes());
  predict.read(words_of("imagenet --load " + lone_ + " -i " + image_ + " -o t.csv --format csv --top 3 --amp o3"));
  const train::PredictOptions& options = predict.options();
  EXPECT_EQ(options.recipe + options.weights.load, "imagenet" + lone_);
  EXPECT_EQ(options.input, image_);
  EXPECT_EQ(options.output, "t.csv");
  EXPECT_EQ(options.format, train::TableFormat::kCsv);
  EXPECT_EQ(options.top, 3);
  EXPECT_EQ(options.precision.amp, amp::AmpLevel::kO3);
  const auto words = predict.arguments();
  EXPECT_THAT(words, ElementsAre("predict", "imagenet", "--load=" + lone_, "--input=" + image_, "--output=t.csv",
                                 "--top=3", "--format=csv", "--amp=O3"));
  train::PredictCommand worker("lockstep", describe_recipes());
  worker.read({words.begin() + 1, words.end()});
  EXPECT_EQ(worker.arguments(), words);
}

TEST_F(PredictLine, ARunsFolderSaysTheRecipeAndItsRecordTheRest) {
  train::PredictCommand predict("lockstep", describe_recipes());
  predict.read({run_, "--input", image_});
  EXPECT_EQ(predict.options().recipe, "unet");
  EXPECT_EQ(predict.options().weights.load, run_);
  EXPECT_TRUE(predict.turns_images());
  predict.take_recorded({{"size", "48"}, {"exif", "off"}}, image_);
  EXPECT_EQ(dynamic_cast<const UNetOptions&>(*predict.recipe()).size, 48);
  EXPECT_FALSE(predict.turns_images());
}

TEST_F(PredictLine, BadLines) {
  EXPECT_THAT(refused("mnist -i " + image_), StartsWith("predict: --load FILE is missing"));
  EXPECT_THAT(refused("mnist --load " + lone_), StartsWith("predict: -i IN is missing"));
  EXPECT_THAT(refused("mnist --load " + lone_ + " -i " + (dir_ / "x.pn")), HasSubstr("did you mean " + image_));
  EXPECT_THAT(refused("mnist --load " + lone_ + " --arch resnet18 -i " + image_), HasSubstr("no such option"));
  EXPECT_THAT(refused("mnsit --load " + lone_ + " -i " + image_), StartsWith("mnsit: unknown recipe"));
  EXPECT_THAT(refused("mnist --load " + lone_ + " --top 0 -i " + image_), HasSubstr("--top 0"));
}

}  // namespace
}  // namespace lockstep::recipes
