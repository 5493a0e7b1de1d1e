#include "lockstep/config/train_options.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace lockstep::config {
namespace {

// What settle() says of options that `change` made, for a machine of 4 cores; "" if it takes them.
std::string refusal(const std::function<void(TrainOptions&)>& change) {
  TrainOptions options;
  options.recipe = "mnist";
  change(options);
  try {
    settle(options, 4);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(TrainOptions, DefaultsAreFine) {
  EXPECT_EQ(refusal([](TrainOptions&) {}), "");
}

TEST(TrainOptions, WhatDoesNotGoTogether) {
  using O = TrainOptions;
  EXPECT_EQ(refusal([](O& o) { o.recipe = "mnits"; }),
            "mnits: unknown recipe; expected mnist, unet or imagenet; did you mean mnist?");
  EXPECT_NE(refusal([](O& o) { o.recipe.clear(); }), "");
  EXPECT_EQ(refusal([](O& o) { o.preset = "padle"; }), "--preset padle: mnist has only paddle; did you mean paddle?");
  EXPECT_EQ(refusal([](O& o) { o.recipe = "unet", o.preset = "paddle"; }), "--preset paddle: unet has no presets");
  EXPECT_EQ(refusal([](O& o) { o.preset = "paddle"; }), "");
  EXPECT_NE(refusal([](O& o) { o.nproc = 3, o.lanes = 4; }), "");
  EXPECT_NE(refusal([](O& o) { o.batch_size = 4, o.global_batch_size = 4; }), "");
  EXPECT_EQ(refusal([](O& o) { o.global_batch_size = 10, o.lanes = 4; }),
            "--global-batch-size 10: expected a multiple of the 4 lanes");
  EXPECT_EQ(refusal([](O& o) { o.global_batch_size = 12, o.nproc = 4; }), "");
  EXPECT_NE(refusal([](O& o) { o.load = "a.pt", o.resume = ""; }), "");
  EXPECT_NE(refusal([](O& o) { o.momentum = 0.9, o.optimizer = OptimizerKind::kAdam; }), "");
  EXPECT_NE(refusal([](O& o) { o.nesterov = true, o.optimizer = OptimizerKind::kAdamW; }), "");
  EXPECT_NE(refusal([](O& o) { o.nesterov = true, o.momentum = 0; }), "");
  EXPECT_EQ(refusal([](O& o) { o.lr = 0.1, o.lr_min = 0.2; }),
            "--lr-min 0.2: above --lr 0.1; expected a number from 0 to 0.1");
  EXPECT_NE(refusal([](O& o) { o.backend = BackendKind::kSingle, o.nproc = 2; }), "");
}

TEST(TrainOptions, ArchAndSizeAreOfSomeRecipesOnly) {
  using O = TrainOptions;
  EXPECT_EQ(refusal([](O& o) { o.arch = Arch::kMobilenetV2; }),
            "--arch mobilenet_v2: mnist has one network; --arch goes with imagenet only");
  EXPECT_NE(refusal([](O& o) { o.recipe = "unet", o.arch = Arch::kResnet18; }), "");
  EXPECT_EQ(refusal([](O& o) { o.recipe = "imagenet", o.arch = Arch::kMobilenetV2, o.size = 32; }), "");
  EXPECT_EQ(refusal([](O& o) { o.recipe = "unet", o.size = 16; }), "");
  EXPECT_EQ(refusal([](O& o) { o.recipe = "imagenet", o.size = 31; }),
            "--size 31: imagenet's networks halve images five times; expected 32 or more");
  EXPECT_EQ(refusal([](O& o) { o.size = 96; }), "--size 96: mnist's images are 28×28; leave --size out");
  TrainOptions options;
  options.recipe = "imagenet";
  settle(options, 1);
  EXPECT_EQ(options.arch, Arch::kResnet18);
}

TEST(TrainOptions, ScaledRates) {
  EXPECT_EQ(read_lr_scale("scale-lr", "linear"), (LrScale{LrRule::kLinear, {}}));
  const LrScale root{LrRule::kSqrt, 256};
  EXPECT_EQ(read_lr_scale("scale-lr", "sqrt=256"), root);
  EXPECT_EQ(read_lr_scale("scale-lr", write_lr_scale(root)), root);
  for (const char* bad : {"", "cubic", "linear=", "linear=0", "linear=x", "=64"}) {
    EXPECT_THROW(read_lr_scale("scale-lr", bad), ConfigError) << bad;
  }
}

TEST(TrainOptions, AutoBecomesANumber) {
  TrainOptions options;
  options.recipe = "mnist";
  options.nproc = 0;
  settle(options, 3);
  EXPECT_EQ(options.nproc, 3);
  options.nproc = 0;
  options.lanes = 8;
  settle(options, 3);
  EXPECT_EQ(options.nproc, 2);
}

TEST(TrainOptions, LanesFollowTheWorldSizeUnlessSaid) {
  TrainOptions options;
  EXPECT_EQ(lanes_of(options, 3), 3);
  options.lanes = 8;
  EXPECT_EQ(lanes_of(options, 2), 8);
}

TEST(TrainOptions, Intervals) {
  const Interval steps{.count = 200, .unit = Interval::Unit::kSteps};
  EXPECT_EQ(read_interval("eval-every", "200"), steps);
  EXPECT_EQ(read_interval("eval-every", "200steps"), steps);
  EXPECT_EQ(read_interval("eval-every", write_interval(steps)), steps);
  const Interval epochs{.count = 2, .unit = Interval::Unit::kEpochs};
  EXPECT_EQ(read_interval("eval-every", "2epochs"), epochs);
  EXPECT_EQ(read_interval("eval-every", write_interval(epochs)), epochs);
  EXPECT_EQ(read_interval("eval-every", "0").count, 0);
  for (const char* bad : {"", "steps", "-1", "1.5", "2 epochs", "2epoch", "99999999999999999999"}) {
    EXPECT_THROW(read_interval("eval-every", bad), ConfigError) << bad;
  }
}

TEST(TrainOptions, EveryOptionHasOneRowAndAGroup) {
  std::set<std::string> names;
  for (const auto& row : train_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.group.empty()) << row.name;
    EXPECT_TRUE(row.set && row.get) << row.name;
  }
}

}  // namespace
}  // namespace lockstep::config
