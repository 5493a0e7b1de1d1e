// The whole line of `lockstep train`, with the recipes that it has.
#include "lockstep/recipes/options/recipe_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/base/testing/words_of.h"
#include "lockstep/config/toml_file.h"
#include "lockstep/datasets/packed/manifest.h"
#include "lockstep/optim/options/optimizer_options.h"
#include "lockstep/recipes/options/testing/train_line.h"
#include "lockstep/train/options/train_command.h"

namespace lockstep::recipes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::Line;
using testing_support::train_line;
using testing_support::train_words;
using testing_support::words_of;

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const auto& each : optim::kOptimizers) names.emplace_back(each.name);
  return names;
}

std::string help_of(const std::string& line) {
  return train::TrainCommand("lockstep", describe_recipes()).read(words_of(line), {.cores = 4}).value_or("no help");
}

std::string refusal(const std::string& line) {
  return testing_support::refusal([&] { train_line(line); });
}

TEST(TrainLine, TakesEveryOption) {
  const Line line = train_line(
      "unet --data d --out o --load l.pt --nproc 2 --lanes 4 --batch-size 8 --epochs 3 --steps 100 --lr 0.1 --lr-min "
      "0.01 --optimizer sgd --momentum 0.9 --nesterov --schedule step --step-size 10 --gamma 0.5 --schedule-steps 90 "
      "--warmup 5 --weight-decay 1e-4 --clip 1 --clip-value 0.5 --ema 0.999 --shard-optimizer off --amp O1 --dtype "
      "fp16 --loss-scale 1024 --channels-last on --threads 2 "
      "--workers 0 --validation 10 --eval-every 50 --save-every 2epochs --keep 5 --seed 7 --deterministic off "
      "--device cpu --backend shm --timeout 30 --on-nan stop --detect-anomaly --quiet --pin --size 96 --scale-lr "
      "sqrt=16");
  const train::TrainOptions& o = line->options();
  EXPECT_EQ(o.recipe, "unet");
  EXPECT_EQ(dynamic_cast<const UNetOptions&>(*line->recipe()).size, 96);
  EXPECT_EQ(o.rate.scale_lr, (schedule::LrScale{schedule::LrRule::kSqrt, 16}));
  EXPECT_EQ(o.data.path + o.out + o.weights.load, "dol.pt");
  EXPECT_EQ(o.parallel.nproc * 100 + o.parallel.lanes * 10 + *o.batch_size, 248);
  EXPECT_EQ(o.epochs, 3);
  EXPECT_EQ(o.steps, 100);
  EXPECT_EQ(o.rate.lr, 0.1);
  EXPECT_EQ(o.rate.lr_min, 0.01);
  EXPECT_EQ(o.optimizer.name, "sgd");
  EXPECT_EQ(o.optimizer.momentum, 0.9);
  EXPECT_TRUE(o.optimizer.nesterov && o.quiet && o.parallel.pin && !o.deterministic);
  EXPECT_EQ(o.rate.schedule, "step");
  EXPECT_EQ(o.rate.step_size, 10);
  EXPECT_EQ(o.rate.gamma, 0.5);
  EXPECT_EQ(o.rate.schedule_steps, 90);
  EXPECT_EQ(o.rate.warmup, 5);
  EXPECT_EQ(o.optimizer.weight_decay, 1e-4);
  EXPECT_EQ(o.optimizer.clip, 1);
  EXPECT_EQ(o.optimizer.clip_value, 0.5);
  EXPECT_EQ(o.optimizer.ema, 0.999);
  EXPECT_EQ(o.parallel.shard_optimizer, parallel::ShardOptimizer::kOff);
  EXPECT_EQ(o.precision.amp, amp::AmpLevel::kO1);
  EXPECT_EQ(o.precision.dtype, amp::HalfType::kFp16);
  EXPECT_EQ(o.precision.loss_scale, 1024);
  EXPECT_EQ(o.channels_last, train::ChannelsLast::kOn);
  EXPECT_EQ(o.parallel.threads, 2);
  EXPECT_EQ(o.data.workers, 0);
  EXPECT_EQ(o.data.validation, 10);
  EXPECT_EQ(o.eval_every, (train::Interval{.count = 50, .unit = train::Interval::Unit::kSteps}));
  EXPECT_EQ(o.save_every, (train::Interval{.count = 2, .unit = train::Interval::Unit::kEpochs}));
  EXPECT_EQ(o.keep, 5);
  EXPECT_EQ(o.seed, 7);
  EXPECT_EQ(o.comm.backend, "shm");
  EXPECT_EQ(o.comm.timeout, 30);
  EXPECT_EQ(o.on_nan, train::OnNan::kStop);
  EXPECT_TRUE(o.detect_anomaly);
}

TEST(TrainLine, OptionalValues) {
  EXPECT_EQ(train_line("mnist --amp")->options().precision.amp, amp::AmpLevel::kAuto);
  EXPECT_EQ(train_line("--amp mnist")->options().precision.amp, amp::AmpLevel::kAuto);
  EXPECT_EQ(train_line("mnist")->options().precision.amp, amp::AmpLevel::kO0);
  EXPECT_FALSE(train_line("mnist")->options().resume.has_value());
  EXPECT_EQ(train_line("mnist --resume")->options().resume, "");
  EXPECT_EQ(train_line("mnist --resume runs/mnist-2")->options().resume, "runs/mnist-2");
  EXPECT_EQ(train_line("mnist --nproc auto")->options().parallel.nproc, 4);
  EXPECT_EQ(train_line("mnist --preset paddle")->options().preset, "paddle");
}

TEST(TrainLine, BadLines) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "train: RECIPE is missing"},
      {"mnits", "mnits: unknown recipe; expected mnist, unet or imagenet; did you mean mnist?"},
      {"mnist extra", "train: extra: one word too many"},
      {"mnist --epoch 3", "--epoch: unknown option; did you mean --epochs?"},
      {"mnist --nproc 3 --lanes 4", "--nproc 3 --lanes 4: each rank needs a power of two of lanes"},
      {"mnist --nproc 0", "--nproc 0: expected a whole number from 1 to 64"},
      {"mnist --nproc 65", "--nproc 65: expected"},
      {"mnist --lanes -4", "--lanes -4: expected"},
      {"mnist --epochs 0", "--epochs 0: expected"},
      {"mnist --epochs", "--epochs"},
      {"mnist --lr nan", "--lr nan: expected a number"},
      {"mnist --lr -1", "--lr -1: expected a number"},
      {"mnist --optimizer rmspropp", cat("--optimizer rmspropp: expected ", config::either(optimizer_names()))},
      {"mnist --amp 01", "--amp 01: did you mean O1, with the letter O?"},
      {"mnist --amp O4", "--amp O4: expected O0, O1, O2, O3 or auto"},
      {"mnist --amp O1 --keep-batchnorm-fp32", "--keep-batchnorm-fp32 goes with --amp O2 and O3"},
      {"mnist --schedule cosin", "--schedule cosin: expected constant, step, multistep,"},
      {"mnist --schedule multistep --milestones 9,3", "--milestones 9,3: expected whole numbers in ascending"},
      {"mnist --schedule cosine --patience 3", "--patience: goes with --schedule plateau only"},
      {"mnist --device gpu", "--device gpu: expected cpu, cuda, or cuda:N"},
      {"mnist --device cuda --backend shm", "--device cuda: goes with --backend nccl"},
      {"mnist --backend nccl", "--backend nccl: goes with --device cuda only"},
      {"mnist --quiet=maybe", "--quiet"},
      {"mnist --validation 100", "--validation 100: expected"},
      {"mnist --config no/such.toml", "--config no/such.toml: No such file"},
      {"mnist --out=", "--out"},
      {"mnist --seed -1", "--seed -1: expected"},
      {"mnist --timeout 1e400", "--timeout 1e400: expected"},
      {"mnist --arch resnet18", "--arch resnet18: goes with imagenet only, and mnist has no such option"},
      {"unet --arch resnet18", "--arch resnet18: goes with imagenet only, and unet has no such option"},
      {"mnist --size 96", "--size 96: goes with unet or imagenet only, and mnist has no such option"},
      {"imagenet --size 31", "--size 31: imagenet's networks halve images five times; expected 32 or more"},
      {"imagenet --mixup 0.0001", "--mixup 0.0001: expected a number from 0.001 to 1000, or 0 for no mixup"},
      {"imagenet --cutmix 1001", "--cutmix 1001: expected a number from 0 to 1000"},
      {"mnist --preset padle", "--preset padle: mnist has only paddle; did you mean paddle?"},
      {"unet --preset paddle", "--preset paddle: unet has only milesial, milesial-ddp or micrographs"},
      {"imagenet --preset paddle", "--preset paddle: imagenet has only apex"},
      {"unet --views 3", "--views 3: expected 1, 2, 4 or 8"},
      {"unet --size 33 --half-size", "--half-size: halves the sides of 33 pixels; give an even --size, such as 34"},
      {"unet --size 96 --scale 0.5", "--size and --scale: give only one of them"},
      {"unet --data d --crop 100", "--crop 100: U-Net halves images four times; give a multiple of 16, such as 96"},
      {"unet --crop 32", "--crop: goes with --data; drawn images are small as they are"},
      {"unet -e x", "--epochs x: expected a whole number"},
      {"mnist --max-errors 3", "--max-errors: unknown option"},
  };
  for (const auto& [line, expected] : cases) EXPECT_THAT(refusal(line), StartsWith(expected)) << line;
}

TEST(TrainLine, ReadsBackTheSame) {
  for (const char* line :
       {"mnist", "unet --amp --dtype fp16 --loss-scale 8 --resume runs/unet-3 --nproc 2 --lanes 8 --quiet --lr 0.1",
        "imagenet --arch mobilenet_v2 --size 32 --scale-lr linear --data=/a/b --eval-every 3epochs --save-every 100 "
        "--seed 9223372036854775807 --deterministic off "
        "--optimizer adamw --validation 12.5 --workers 0 --global-batch-size 64"}) {
    const Line first = train_line(line);
    const auto words = first->arguments();
    const Line again = train_words({words.begin() + 1, words.end()});
    EXPECT_EQ(again->arguments(), words);
    EXPECT_EQ(to_toml(again->rows()), to_toml(first->rows()));
    EXPECT_EQ(again->options().resume, first->options().resume);
  }
  EXPECT_THAT(
      train_line("mnist --epochs 3 --quiet --amp")->arguments(),
      ElementsAre("train", "mnist", "--epochs=3", "--amp=auto", "--nproc=4", "--lanes=4", "--threads=1", "--quiet"))
      << "the ranks get the numbers that were chosen";
  EXPECT_THAT(train_line("mnist --nproc 2")->arguments(), ElementsAre("train", "mnist", "--nproc=2"));
  EXPECT_THAT(train_line("mnist --nproc 1 --seed 1")->arguments(),
              ElementsAre("train", "mnist", "--seed=1", "--nproc=1"))
      << "what was said is said again, or a worker would take it from the resumed run";
}

class TrainFile : public testing::Test {
 protected:
  TrainFile() {
    std::string folder = testing::TempDir() + "/config-XXXXXX";
    path_ = std::string(mkdtemp(folder.data())) + "/run.toml";
  }
  void write(const std::string& text) { std::ofstream(path_) << text; }

  std::string path_;
};

std::string recorded(const Line& line, const std::string& name) {
  for (const auto& option : line->rows().record()) {
    if (option.name == name) return option.value;
  }
  return "no such option";
}

// A rank that reads the words again has it off, too; and a run that says 0 is one that says nothing.
TEST_F(TrainFile, AnAlphaOfNoneIsUndoneByZero) {
  write("recipe = 'imagenet'\nmixup = 0.2\ncutmix = 1\n");
  const Line line = train_line("--mixup 0 --config " + path_);
  EXPECT_EQ(dynamic_cast<const ImagenetOptions&>(*line->recipe()).mixup, 0);
  EXPECT_EQ(recorded(line, "mixup"), "");
  EXPECT_EQ(recorded(line, "cutmix"), "1");
  EXPECT_EQ(recorded(train_line("imagenet"), "mixup"), "");
  EXPECT_EQ(recorded(train_line("imagenet --label-smoothing 0"), "label-smoothing"), "");
  const Line resumed = train_words({"imagenet", "--resume", "runs/mixed", "--mixup", "0"},
                                   [&](const train::TrainOptions&) { return path_; });
  EXPECT_THAT(resumed->arguments(), testing::Contains("--mixup=0"));
}

TEST_F(TrainFile, TheCommandLineWinsOverTheFile) {
  write("recipe = 'unet'\nepochs = 3\nlr = 1\nbatch-size = 4\namp = 'O1'\nquiet = true\nsize = 96\n");
  const Line line = train_line("--lr 2 --global-batch-size 8 --config " + path_);
  const train::TrainOptions& o = line->options();
  EXPECT_EQ(o.recipe, "unet");
  EXPECT_EQ(o.epochs, 3);
  EXPECT_EQ(o.rate.lr, 2.0);
  EXPECT_EQ(o.precision.amp, amp::AmpLevel::kO1);
  EXPECT_TRUE(o.quiet);
  EXPECT_FALSE(o.batch_size.has_value());
  EXPECT_EQ(o.global_batch_size, 8);
  EXPECT_EQ(dynamic_cast<const UNetOptions&>(*line->recipe()).size, 96);
  EXPECT_EQ(train_line("unet --config " + path_)->options().recipe, "unet");
  EXPECT_THAT(refusal("mnist --config " + path_),
              StartsWith("--config " + path_ + ": of the recipe unet, not of mnist"));
  write("size = 96\n");
  EXPECT_THAT(refusal("mnist --config " + path_), HasSubstr("--size 96: goes with"));
  write("epochs = 'ten'\n");
  EXPECT_THAT(refusal("mnist --config " + path_), HasSubstr(path_ + ": --epochs ten: expected"));
}

TEST_F(TrainFile, ARunsOwnFileRepeatsIt) {
  for (const char* line : {"mnist --nproc 2 --lanes 4 --amp --loss-scale 4 --seed 9223372036854775807",
                           "imagenet --arch mobilenet_v2 --size 48 --schedule multistep --milestones 3,5 --warmup 1"}) {
    const Line first = train_line(line);
    write(to_toml(first->rows()));
    EXPECT_EQ(to_toml(train_line("--config " + path_)->rows()), to_toml(first->rows()));
  }
}

TEST_F(TrainFile, AResumedRunsHoldsWhereNothingElseSpeaks) {
  write("recipe = \"unet\"\nlr = 0.3\nseed = 9\nsteps = 12\namp = \"O1\"\nsize = 32\n");
  const auto find = [this](const train::TrainOptions&) { return path_; };
  const Line line = train_words({"unet", "--resume", "x", "--seed", "1"}, find);
  EXPECT_EQ(line->options().rate.lr, 0.3);
  EXPECT_EQ(line->options().seed, 1);
  EXPECT_EQ(line->options().precision.amp, amp::AmpLevel::kO1);
  EXPECT_FALSE(line->options().steps) << "--steps belongs to one start";
  EXPECT_EQ(dynamic_cast<const UNetOptions&>(*line->recipe()).size, 32);
  const auto words = line->arguments();
  EXPECT_EQ(train_words({words.begin() + 1, words.end()}, find)->options().seed, 1);
}

TEST_F(TrainFile, AResumedRunsFileSaysWhichRecipeItIs) {
  write("recipe = \"unet\"\nload = \"first.pt\"\nparent = \"runs/a/checkpoints/step-000002.pt\"\nepochs = 3\n");
  const auto find = [this](const train::TrainOptions&) { return path_; };
  const Line line = train_words({"--resume", "x", "--steps", "9"}, find);
  EXPECT_EQ(line->options().recipe, "unet");
  EXPECT_EQ(line->options().loaded.load, "first.pt");
  EXPECT_EQ(line->options().parent, "runs/a/checkpoints/step-000002.pt");
  EXPECT_TRUE(line->options().epochs_recalled);
  EXPECT_THAT(line->arguments(), ElementsAre("train", "unet", "--resume=x", "--steps=9", "--nproc=1", "--size=64"))
      << "a worker recalls the rest itself";
  EXPECT_FALSE(train_words({"--resume", "x", "--epochs", "3"}, find)->options().epochs_recalled);
  EXPECT_THAT(testing_support::refusal([&] {
                train_words({"mnist", "--resume", "x"}, find);
              }),
              StartsWith("--resume x: of the recipe unet, not of mnist"));
  EXPECT_THAT(testing_support::refusal([&] { train_words({"--resume"}, find); }), HasSubstr("RECIPE is missing"))
      << "the newest run of which recipe?";
}

TEST_F(TrainFile, WhatWentWithAnotherChoiceIsNotRecalled) {
  write(
      "recipe = \"unet\"\namp = \"O2\"\nkeep-batchnorm-fp32 = \"on\"\nloss-scale = 8\noptimizer = \"sgd\"\n"
      "momentum = 0.9\nschedule = \"step\"\nstep-size = 4\nwarmup = 7\nlr-min = 0.001\n");
  const auto find = [this](const train::TrainOptions&) { return path_; };
  const Line same = train_words({"--resume", "x", "--amp", "auto", "--schedule", "step"}, find);
  EXPECT_EQ(same->options().precision.loss_scale, 8);
  EXPECT_EQ(same->options().rate.step_size, 4);
  EXPECT_EQ(same->options().rate.warmup, 7);
  const Line other = train_words(
      {"--resume", "x", "--amp", "O1", "--optimizer", "adamw", "--schedule", "cosine", "--lr", "0.1"}, find);
  EXPECT_FALSE(other->options().precision.keep_batchnorm_fp32);
  EXPECT_FALSE(other->options().optimizer.momentum);
  EXPECT_FALSE(other->options().rate.step_size);
  EXPECT_FALSE(other->options().rate.warmup);
  EXPECT_EQ(other->options().rate.lr_min, 0.001);
}

TEST_F(TrainFile, OfAForkIsNotTakenForAFreshRun) {
  write("recipe = \"unet\"\nparent = \"runs/a/checkpoints/step-000002.pt\"\n");
  EXPECT_THAT(refusal("--config " + path_), HasSubstr("add --resume runs/a/checkpoints/step-000002.pt and --out DIR"));
  EXPECT_EQ(train_line("--resume y.pt --config " + path_)->options().resume, "y.pt");
}

TEST_F(TrainFile, ABatchSizeOfALaterPlaceWins) {
  write("recipe = \"unet\"\nbatch-size = 4\nlanes = 2\n");
  const std::string own = path_;
  const auto find = [&own](const train::TrainOptions&) { return own; };
  path_ += ".wanted";
  write("global-batch-size = 16\n");
  const Line line = train_words({"--resume", "x", "--config", path_}, find);
  EXPECT_EQ(line->options().global_batch_size, 16);
  EXPECT_FALSE(line->options().batch_size);
}

TEST(TrainLine, SaysHowItsRunGoesOn) {
  EXPECT_EQ(train_line("mnist --lr 0.1 --steps 40 --quiet --load a.pt")->resume_command("runs/mnist-1"),
            "lockstep train mnist --resume runs/mnist-1 --steps 40 --quiet");
  EXPECT_EQ(train_line("mnist")->resume_command("my runs/it's"), "lockstep train mnist --resume 'my runs/it'\\''s'");
}

TEST(TrainHelp, NamesEveryOptionByComponent) {
  const std::string text = help_of("--help");
  const Line line_of_mnist = train_line("mnist");
  for (const auto& row : line_of_mnist->rows().rows()) {
    if (row.form != config::OptionForm::kWord) EXPECT_THAT(text, HasSubstr("  --" + row.name)) << text;
  }
  EXPECT_THAT(text, HasSubstr("\nPrecision:\n"));
  EXPECT_THAT(text, HasSubstr("\nRecipe unet:\n"));
  EXPECT_THAT(text, HasSubstr("--amp [O0|O1|O2|O3|auto]"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

TEST(TrainHelp, OfARecipeShowsItsOwnOptionsAlone) {
  EXPECT_THAT(help_of("imagenet --help"),
              HasSubstr("--arch resnet18|resnet34|resnet50|resnet101|resnet152|mobilenet_v2|"));
  EXPECT_THAT(help_of("mnist -h"), testing::Not(HasSubstr("--arch")));
}

// A checkpoint in no run's folder, and one in a run's.
TEST(ImagenetOptions, PackedCifarHasTheSizeOfCifar) {
  const testing_support::TempDir dir;
  const auto side_of = [&](datasets::Packed kind) {
    datasets::write_manifest(dir.path(), {.kind = kind});
    return ImagenetOptions().side(dir.path());
  };
  EXPECT_EQ(side_of(datasets::Packed::kCifar10), 32);
  EXPECT_EQ(side_of(datasets::Packed::kCifar100), 32);
  EXPECT_EQ(side_of(datasets::Packed::kImages), 224);
}

}  // namespace
}  // namespace lockstep::recipes
