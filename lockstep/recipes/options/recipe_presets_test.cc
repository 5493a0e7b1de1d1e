// Presets, and other people's names for options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/recipes/options/recipe_options.h"
#include "lockstep/recipes/options/testing/train_line.h"

namespace lockstep::recipes {
namespace {

using testing_support::train_line;

TEST(TrainLine, WhatIsSaidWinsOverAPreset) {
  const auto of = [](const std::string& line) { return train_line("mnist --preset paddle " + line)->options(); };
  EXPECT_EQ(of("").batch_size, 25);
  EXPECT_EQ(of("--nproc 1").parallel.lanes, 4);
  EXPECT_EQ(of("").optimizer.momentum, 0);
  EXPECT_EQ(of("--batch-size 32").batch_size, 32) << "also the recipe's own";
  EXPECT_EQ(of("--optimizer adam").optimizer.momentum, std::nullopt) << "which the preset's optimizer has";
}

// A line of Pytorch-UNet's train.py, or of one of its descendants', as people have it in their scripts.
TEST(TrainLine, UNetTakesMilesialsOptions) {
  for (const char* line :
       {"unet -e 3 -b 2 -l 0.01 -f w.pt -s 0.25 -v 20 -c 1 --amp --bilinear --exp_name cells "
        "--ddp_mode --save_every 5 --start_from 7 --data d",
        "unet --epochs 3 --batch_size 2 --learning-rate 0.01 --load w.pt --scale 0.25 --validation "
        "20 --classes 1 --amp --bilinear --exp-name=cells --ddp-mode --save-every 5epochs --start-from 7 --data d",
        "unet -e3 -b=2 --learning_rate=0.01 -f w.pt -s 0.25 -v 20.0 -c1 --amp --bilinear "
        "--exp_name=cells --ddp_mode --save_every=5 --start_from=7 --data d"}) {
    const auto read = train_line(line);
    const train::TrainOptions& o = read->options();
    const auto& unet = dynamic_cast<const UNetOptions&>(*read->recipe());
    EXPECT_EQ(o.epochs, 3) << line;
    EXPECT_EQ(o.batch_size, 2) << line;
    EXPECT_EQ(o.rate.lr, 0.01) << line;
    EXPECT_EQ(o.weights.load, "w.pt") << line;
    EXPECT_EQ(o.first_epoch, 7) << line;
    EXPECT_EQ(unet.scale, 0.25) << line;
    EXPECT_EQ(o.data.validation, 20) << line;
    EXPECT_EQ(unet.classes, 1) << line;
    EXPECT_EQ(o.precision.amp, amp::AmpLevel::kAuto) << line;
    EXPECT_TRUE(unet.bilinear) << line;
    EXPECT_EQ(o.out, "runs/cells") << line;
    EXPECT_EQ(o.parallel.nproc, 4) << line;
    EXPECT_EQ(write_interval(*o.save_every), "5epochs") << line;
  }
  EXPECT_EQ(write_interval(*train_line("unet --save-every 5")->options().save_every), "5steps");
}

// Of a preset's --scale and the line's --size, which stand for one another, the later counts.
TEST(TrainLine, AnOptionThatStandsForAnotherReplacesIt) {
  const auto unet_of = [](const std::string& line) {
    const auto read = train_line(line);
    return dynamic_cast<const UNetOptions&>(*read->recipe());
  };
  EXPECT_EQ(unet_of("unet --preset milesial --size 96").size, 96);
  EXPECT_EQ(unet_of("unet --preset milesial --size 96").scale, std::nullopt);
  const std::string sized = ::testing::TempDir() + "sized.toml";
  std::ofstream(sized) << "recipe = \"unet\"\nsize = 64\n";
  EXPECT_EQ(unet_of("--config " + sized + " --scale 0.5").scale, 0.5);
  EXPECT_EQ(unet_of("--config " + sized + " --scale 0.5").size, std::nullopt);
  EXPECT_EQ(train_line("unet --preset milesial --schedule cosine")->options().rate.warmup, 0);
}

TEST(TrainLine, ApexsPreset) {
  const auto o = train_line("imagenet --preset apex --arch resnet50 --sync-bn")->options();
  EXPECT_EQ(o.epochs, 90);
  EXPECT_EQ(o.rate.lr, 0.1);
  EXPECT_EQ(o.rate.scale_lr->base, 256);
  EXPECT_EQ(o.rate.schedule, "multistep");
  EXPECT_EQ(schedule::write_milestones(o.rate.milestones), "30epochs,60epochs,80epochs");
  EXPECT_EQ(schedule::write_length(*o.rate.warmup), "5epochs");
  EXPECT_EQ(o.optimizer.weight_decay, 1e-4);
  const auto cosine = train_line("imagenet --preset apex --schedule cosine --epochs 20")->options();
  EXPECT_TRUE(cosine.rate.milestones.empty());
  EXPECT_EQ(schedule::write_length(*cosine.rate.warmup), "5epochs") << "goes with any schedule";
  const auto cycle = train_line("imagenet --preset apex --schedule onecycle")->options();
  EXPECT_FALSE(cycle.rate.warmup) << "that has one of its own";
  const auto asked = train_line("imagenet --preset apex --schedule onecycle --warmup 2epochs")->options();
  EXPECT_EQ(schedule::write_length(*asked.rate.warmup), "2epochs");
}

TEST(TrainLine, MilesialsPresets) {
  const auto one = train_line("unet --preset milesial"), more = train_line("unet --preset milesial-ddp");
  EXPECT_EQ(one->options().optimizer.name, "rmsprop");
  EXPECT_EQ(one->options().optimizer.momentum, 0.999);
  EXPECT_EQ(one->options().optimizer.clip, 1);
  EXPECT_EQ(write_interval(*one->options().eval_every), "5/epoch");
  EXPECT_EQ(more->options().optimizer.name, "adamw");
  EXPECT_EQ(more->options().rate.lr_min, 1e-7);
  EXPECT_EQ(write_interval(*more->options().save_every), "5epochs");
  EXPECT_EQ(one->options().rate.schedule, "plateau");
  EXPECT_EQ(one->options().rate.plateau_metric, "dice");
  EXPECT_EQ(one->options().rate.patience, 5);
  EXPECT_EQ(more->options().rate.schedule, "cosine");
  EXPECT_EQ(more->options().rate.unit, schedule::ScheduleUnit::kEpochs) << "T_max is the number of epochs";
  for (const auto* each : {one.get(), more.get()}) {
    const auto& unet = dynamic_cast<const UNetOptions&>(*each->recipe());
    EXPECT_EQ(each->options().epochs, 5);
    EXPECT_EQ(each->options().batch_size, 1);
    EXPECT_EQ(each->options().parallel.lanes_of(each->options().parallel.nproc), 1) << "one image a step";
    EXPECT_EQ(each->options().optimizer.weight_decay, 1e-8);
    EXPECT_EQ(each->options().rate.warmup, 0);
    EXPECT_EQ(unet.classes, 2);
    EXPECT_EQ(each->options().rate.lr, 1e-5);
    EXPECT_EQ(each->options().data.validation, 10);
    EXPECT_EQ(unet.scale, 0.5);
    EXPECT_EQ(unet.dice, Dice::kMilesial);
    EXPECT_EQ(unet.images.augment, datasets::Augment::kNone);
  }
}

TEST(TrainLine, ThePresetOfMicrographsIsWhatTheLineLeavesOpen) {
  const auto read = train_line("unet --preset micrographs --data d --crop 224 --epochs 3");
  const auto& unet = dynamic_cast<const UNetOptions&>(*read->recipe());
  EXPECT_TRUE(unet.half_size && read->options().parallel.sync_bn);
  EXPECT_EQ(unet.crop, 224);
  EXPECT_EQ(unet.scale, 1);
  EXPECT_EQ(unet.width, 16);
  EXPECT_EQ(read->options().parallel.lanes, 4);
  EXPECT_EQ(read->options().epochs, 3);
  EXPECT_EQ(train_line("unet --preset micrographs --data d --nproc 4")->options().parallel.lanes, 4);
  EXPECT_EQ(train_line("unet --preset none --data d")->options().epochs, train_line("unet --data d")->options().epochs);
}

// A mistake is told where it was made: the preset's in its file, and its least rate in its own name.
TEST(TrainLine, APresetsMistakesAreToldWhereTheyWereMade) {
  const auto refused = [](const std::string& line) { return testing_support::refusal([&] { train_line(line); }); };
  const std::string file = ::testing::TempDir() + "preset.toml";
  std::ofstream(file) << "recipe = \"unet\"\npreset = \"milesail\"\n";
  EXPECT_THAT(refused("--config " + file), ::testing::StartsWith(file + ": --preset milesail: unet has only "));
  EXPECT_THAT(refused("unet --preset milesail"), ::testing::StartsWith("--preset milesail: unet has only "));
  EXPECT_EQ(refused("unet --preset milesial-ddp --lr 1e-8"),
            "--lr 1e-08: below the least rate of --preset milesial-ddp, 1e-07; give --lr-min too, such as --lr-min 0");
  EXPECT_THAT(refused("unet --preset milesial-ddp --lr 1e-8 --lr-min 1e-7"), ::testing::StartsWith("--lr-min 1e-07: "));
  EXPECT_EQ(train_line("unet --preset milesial-ddp --lr 1e-8 --lr-min 0")->options().rate.lr_min, 0);
}

TEST(TrainLine, WithoutEventFilesAFilesHistogramsAreForgotten) {
  const std::string file = ::testing::TempDir() + "tracked.toml";
  std::ofstream(file) << "recipe = \"unet\"\ntrack = \"tensorboard\"\nhistograms-every = 5\n";
  EXPECT_EQ(train_line("--config " + file)->options().histograms_every, 5);
  EXPECT_EQ(train_line("--config " + file + " --track none")->options().histograms_every, std::nullopt);
  EXPECT_THAT(testing_support::refusal([&] { train_line("--config " + file + " --track csv --histograms-every 5"); }),
              ::testing::HasSubstr("goes with --track tensorboard"));
}

}  // namespace
}  // namespace lockstep::recipes
