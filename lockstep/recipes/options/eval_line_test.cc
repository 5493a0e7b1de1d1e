// The whole line of `lockstep eval`, with the recipes that it has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/base/testing/words_of.h"
#include "lockstep/recipes/options/recipe_options.h"
#include "lockstep/train/options/eval_command.h"

namespace lockstep::recipes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::TempDir;
using testing_support::words_of;

class EvalLine : public testing::Test {
 protected:
  EvalLine() {
    std::filesystem::create_directories(run_ + "/checkpoints");
    std::filesystem::create_directory(data_);
    for (const auto& file : {lone_, run_ + "/checkpoints/step-000002.pt", checkpoint_}) std::ofstream(file) << "x";
    std::ofstream(run_ + "/config.toml") << "recipe = 'unet'\nsize = 32\ndata = '" << data_ << "'\nlr = 0.5\n";
  }
  static std::string refused(const std::string& line) {
    return testing_support::refusal([&] { train::EvalCommand("lockstep", describe_recipes()).read(words_of(line)); });
  }

  TempDir dir_;
  std::string lone_ = dir_ / "x.pt", run_ = dir_ / "run", data_ = dir_ / "data";
  std::string checkpoint_ = run_ + "/checkpoints/step-000009.pt";
};

TEST_F(EvalLine, IsRead) {
  train::EvalCommand eval("lockstep", describe_recipes());
  eval.read(words_of("mnist --load " + lone_ + " --nproc 2 --threads 1 --amp --dtype fp16 --device cuda:1 --json"));
  const train::EvalOptions& options = eval.options();
  EXPECT_EQ(options.recipe + options.weights.load, "mnist" + lone_);
  EXPECT_FALSE(options.run_data);
  EXPECT_TRUE(options.json && options.processes.nproc == 2 && options.processes.threads == 1);
  EXPECT_EQ(options.precision.amp, amp::AmpLevel::kAuto);
  EXPECT_EQ(options.precision.dtype, amp::HalfType::kFp16);
  EXPECT_EQ(options.device, train::DeviceChoice(train::DeviceKind::kCuda, 1));
  EXPECT_THAT(eval.arguments(), ElementsAre("eval", "mnist", "--load=" + lone_, "--nproc=2", "--threads=1",
                                            "--amp=auto", "--dtype=fp16", "--device=cuda:1", "--json"));
  train::EvalCommand plain("lockstep", describe_recipes());
  plain.read(words_of("mnist --load " + lone_));
  EXPECT_FALSE(plain.options().precision.amp || plain.options().precision.dtype) << "the run's";
}

TEST_F(EvalLine, ARunsFolderSaysTheRest) {
  for (const std::string& line : {run_, checkpoint_, "unet --load " + checkpoint_, "--load " + run_}) {
    train::EvalCommand eval("lockstep", describe_recipes());
    eval.read(words_of(line));
    EXPECT_EQ(eval.options().recipe, "unet") << line;
    EXPECT_EQ(eval.options().weights.load, line.find(checkpoint_) == std::string::npos ? run_ : checkpoint_) << line;
    EXPECT_EQ(eval.options().data, "") << line;
    EXPECT_EQ(eval.options().data_path(), data_) << line;
    EXPECT_EQ(eval.options().run_data, data_) << line;
    const auto words = eval.arguments();
    train::EvalCommand worker("lockstep", describe_recipes());
    worker.read({words.begin() + 1, words.end()});
    EXPECT_EQ(worker.arguments(), words);
    EXPECT_EQ(worker.options().run_data, data_);
  }
  train::EvalCommand other("lockstep", describe_recipes());
  other.read(words_of(run_ + " --load " + run_ + "/checkpoints/step-000002.pt --data " + dir_.path()));
  EXPECT_EQ(other.options().weights.load, run_ + "/checkpoints/step-000002.pt");
  EXPECT_EQ(other.options().data, dir_.path());
  EXPECT_EQ(other.options().run_data, data_);
}

TEST_F(EvalLine, TheRecipesOptionsAreTheCheckpointsUnlessSaid) {
  train::EvalCommand eval("lockstep", describe_recipes());
  eval.read(words_of("imagenet --load " + lone_ + " --size 64"));
  EXPECT_THAT(eval.arguments(), ElementsAre("eval", "imagenet", "--load=" + lone_, "--size=64"));
  train::EvalCommand of_run("lockstep", describe_recipes());
  of_run.read(words_of("imagenet --load " + lone_));
  EXPECT_THAT(of_run.arguments(), ElementsAre("eval", "imagenet", "--load=" + lone_)) << "a rank asks the checkpoint";
  of_run.take_recorded({{"size", "96"}});
  EXPECT_EQ(dynamic_cast<const ImagenetOptions&>(*of_run.recipe()).size, 96);
  eval.take_recorded({{"arch", "mobilenet_v2"}, {"size", "96"}, {"seed", "3"}});
  const auto& recipe = dynamic_cast<const ImagenetOptions&>(*eval.recipe());
  EXPECT_EQ(recipe.arch, Arch::kMobilenetV2);
  EXPECT_EQ(recipe.size, 64);
}

TEST_F(EvalLine, BadLines) {
  EXPECT_THAT(refused("mnist"), StartsWith("eval: --load FILE is missing"));
  EXPECT_THAT(refused(""), StartsWith("eval: --load FILE is missing"));
  EXPECT_THAT(refused("mnsit --load " + lone_), StartsWith("mnsit: unknown recipe"));
  EXPECT_THAT(refused("mnsit"), StartsWith("mnsit: unknown recipe"));
  EXPECT_THAT(refused("mnist --load x --jsn"), StartsWith("--jsn: unknown option; did you mean --json?"));
  EXPECT_THAT(refused("mnist --arch resnet18 --load " + lone_), HasSubstr("mnist has no such option"));
  EXPECT_THAT(refused("mnist --load " + (dir_ / "y.pt")), HasSubstr("no such file or folder; did you mean " + lone_));
  EXPECT_THAT(refused(dir_ / "rn"), HasSubstr("no such file or folder; did you mean " + run_));
  EXPECT_THAT(refused("mnist --load " + lone_ + " --data " + (dir_ / "dat")), HasSubstr("did you mean " + data_));
  EXPECT_THAT(refused(lone_), HasSubstr("no config.toml of a run says which recipe it is"));
  EXPECT_THAT(refused(data_), HasSubstr("no run's folder with a checkpoint"));
}

TEST_F(EvalLine, APictureOfTheWorstNeedsItsNumberAndItsFile) {
  train::EvalCommand eval("lockstep", describe_recipes());
  eval.read(words_of("mnist --load " + lone_ + " --worst 16 --out " + (dir_ / "sheet.png")));
  EXPECT_EQ(eval.options().worst, 16);
  EXPECT_THAT(eval.arguments(),
              ElementsAre("eval", "mnist", "--load=" + lone_, "--worst=16", "--out=" + (dir_ / "sheet.png")));
  const std::string line = "mnist --load " + lone_;
  EXPECT_EQ(refused(line + " --worst 16"), "--worst 16: into which file? Say --out sheet.png");
  EXPECT_EQ(refused(line + " --out a.png"), "--out a.png: it goes with --worst N, whose picture it is");
  EXPECT_EQ(refused(line + " --worst 16 --out a.jpg"), "--out a.jpg: it is a PNG; call it sheet.png");
  EXPECT_EQ(refused(line + " --worst 16 --out no/where/a.png"),
            "--out no/where/a.png: there is no folder no/where; make it first");
  EXPECT_THAT(refused(line + " --worst 0 --out a.png"), HasSubstr("1 to 256"));
}

}  // namespace
}  // namespace lockstep::recipes
