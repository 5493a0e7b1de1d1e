#include "lockstep/train/options/train_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;
using O = TrainOptions;

// Returns the error of resolve() for options changed by `change`, on a machine of 4 cores, or "" if it accepts them.
std::string refusal(const std::function<void(O&)>& change) {
  O options;
  change(options);
  return testing_support::refusal([&] { options.resolve({.cores = 4}, /*recipe_lanes=*/4); });
}

TEST(TrainOptions, DefaultsAreFine) {
  EXPECT_EQ(refusal([](O&) {}), "");
}

TEST(TrainOptions, SizesThatDoNotGoTogether) {
  EXPECT_NE(refusal([](O& o) { o.parallel.nproc = 3, o.parallel.lanes = 4; }), "");
  EXPECT_NE(refusal([](O& o) { o.batch_size = 4, o.global_batch_size = 4; }), "");
  EXPECT_EQ(refusal([](O& o) { o.global_batch_size = 10, o.parallel.lanes = 4; }),
            "--global-batch-size 10: expected a multiple of the 4 lanes");
  EXPECT_EQ(refusal([](O& o) { o.global_batch_size = 12, o.parallel.nproc = 4; }), "");
  EXPECT_NE(refusal([](O& o) { o.weights.load = "a.pt", o.resume = ""; }), "");
  EXPECT_NE(refusal([](O& o) { o.weights.average = TakesAverage::kOn; }), "");
  EXPECT_EQ(refusal([](O& o) { o.weights.average = TakesAverage::kOff; }), "") << "as older files say";
}

TEST(TrainOptions, OptimizersAndRatesThatDoNotGoTogether) {
  EXPECT_NE(refusal([](O& o) { o.optimizer.momentum = 0.9, o.optimizer.name = "adam"; }), "");
  EXPECT_NE(refusal([](O& o) { o.optimizer.nesterov = true, o.optimizer.name = "adamw"; }), "");
  EXPECT_NE(refusal([](O& o) { o.optimizer.nesterov = true, o.optimizer.momentum = 0; }), "");
  EXPECT_EQ(refusal([](O& o) { o.optimizer.momentum = 0.9, o.optimizer.name = "lars"; }), "");
  EXPECT_EQ(refusal([](O& o) { o.rate.lr = 0.1, o.rate.lr_min = 0.2; }),
            "--lr-min 0.2: above --lr 0.1; expected a number from 0 to 0.1");
  EXPECT_THAT(refusal([](O& o) { o.rate.schedule = "cosine", o.rate.patience = 3; }),
              HasSubstr("--patience: goes with"));
  EXPECT_THAT(refusal([](O& o) { o.rate.schedule = "plateau", o.eval_every = Interval{.count = 0}; }),
              HasSubstr("--eval-every 0"));
}

TEST(TrainOptions, DevicesAndBackendsThatDoNotGoTogether) {
  EXPECT_NE(refusal([](O& o) { o.comm.backend = "single", o.parallel.nproc = 2; }), "");
  EXPECT_NE(refusal([](O& o) { o.comm.backend = "nccl"; }), "");
  EXPECT_NE(refusal([](O& o) { o.comm.backend = "shm", o.device = DeviceKind::kCuda; }), "");
  EXPECT_EQ(refusal([](O& o) { o.comm.backend = "gloo", o.device = DeviceKind::kCuda; }), "");
}

// The ranks of `--nproc auto` on a GPU, of a machine with three of them and 64 cores.
int ranks_on_gpus(const DeviceChoice& device, int lanes, bool launched = false) {
  O options;
  options.device = device;
  options.parallel.lanes = lanes;
  options.parallel.nproc = parallel::ParallelOptions::kAuto;
  options.resolve({.cores = 64, .launched = launched, .gpus = [] { return 3; }}, /*recipe_lanes=*/4);
  return options.parallel.nproc;
}

TEST(TrainOptions, AutoIsOneRankAGpuWhereGpusTrain) {
  EXPECT_EQ(ranks_on_gpus(DeviceKind::kCuda, 0), 3);
  EXPECT_EQ(ranks_on_gpus(DeviceKind::kCuda, 4), 2) << "a power of two of lanes each";
  EXPECT_EQ(ranks_on_gpus({DeviceKind::kCuda, 1}, 0), 1) << "they would share it";
  EXPECT_EQ(ranks_on_gpus(DeviceKind::kCuda, 0, /*launched=*/true), 1) << "the launcher has decided";
  EXPECT_EQ(ranks_on_gpus(DeviceKind::kCpu, 0), 64);
  O options;
  options.device = DeviceKind::kCuda;
  options.parallel.nproc = parallel::ParallelOptions::kAuto;
  EXPECT_THAT(
      testing_support::refusal([&] { options.resolve({.cores = 4, .gpus = [] { return 0; }}, /*recipe_lanes=*/4); }),
      HasSubstr("--device cuda: no GPU can be used here"));
}

TEST(TrainOptions, IntervalsOfTime) {
  const Interval minutes{.count = 10, .unit = Interval::Unit::kMinutes};
  EXPECT_EQ(read_interval_or_time("save-every", "10min"), minutes);
  EXPECT_EQ(read_interval_or_time("save-every", write_interval(minutes)), minutes);
  EXPECT_EQ(seconds_of(minutes), 600);
  EXPECT_EQ(seconds_of(read_interval_or_time("save-every", "90s")), 90);
  EXPECT_EQ(seconds_of(read_interval_or_time("save-every", "2h")), 7200);
  EXPECT_EQ(seconds_of(read_interval_or_time("save-every", "200")), 0);
  EXPECT_THROW(read_interval_or_time("save-every", "10m"), ConfigError);
  EXPECT_THROW(read_interval("eval-every", "10min"), ConfigError);
}

TEST(TrainOptions, SnapshotsNeedTheMemoryOfBackgroundSaves) {
  EXPECT_THAT(refusal([](O& o) { o.snapshot_every = 5, o.background_saves = false; }),
              HasSubstr("--snapshot-every: goes with --background-saves on"));
  EXPECT_EQ(refusal([](O& o) { o.snapshot_every = 5; }), "");
  EXPECT_EQ(refusal([](O& o) { o.background_saves = false; }), "");
}

TEST(TrainOptions, HistogramsNeedTensorboard) {
  EXPECT_EQ(refusal([](O& o) { o.histograms_every = 5; }),
            "--histograms-every: goes with --track tensorboard, which shows them");
  EXPECT_EQ(refusal([](O& o) { o.histograms_every = 5, o.track.tensorboard = true; }), "");
}

TEST(TrainOptions, Intervals) {
  const Interval steps{.count = 200, .unit = Interval::Unit::kSteps};
  EXPECT_EQ(read_interval("eval-every", "200"), steps);
  EXPECT_EQ(read_interval("eval-every", "200steps"), steps);
  EXPECT_EQ(read_interval("eval-every", write_interval(steps)), steps);
  const Interval epochs{.count = 2, .unit = Interval::Unit::kEpochs};
  EXPECT_EQ(read_interval("eval-every", "2epochs"), epochs);
  EXPECT_EQ(read_interval("eval-every", write_interval(epochs)), epochs);
  const Interval parts{.count = 5, .unit = Interval::Unit::kPerEpoch};
  EXPECT_EQ(read_interval("eval-every", "5/epoch"), parts);
  EXPECT_EQ(read_interval("eval-every", write_interval(parts)), parts);
  EXPECT_EQ(read_interval("eval-every", "0").count, 0);
  for (const char* bad : {"", "steps", "-1", "1.5", "2 epochs", "2epoch", "99999999999999999999"}) {
    EXPECT_THROW(read_interval("eval-every", bad), ConfigError) << bad;
  }
}

// The options that a resumed run must share with its checkpoint. The list is short on purpose; a longer one is a
// mistake.
TEST(TrainOptions, WhatARunIs) {
  O options;
  config::OptionSet rows;
  options.declare(rows);
  std::vector<std::string> identity;
  for (const auto& row : rows.rows()) {
    EXPECT_FALSE(row.section.empty() && row.form != config::OptionForm::kWord) << row.name;
    if (row.effect == config::Effect::kIdentity) identity.push_back(row.name);
  }
  EXPECT_THAT(identity, testing::UnorderedElementsAre("recipe", "batch-size", "seed", "validation", "hold-out",
                                                      "drop-last", "optimizer", "decay-all", "param-groups", "ema",
                                                      "amp", "dtype", "keep-batchnorm-fp32", "channels-last", "lanes",
                                                      "sync-bn", "comm-dtype", "first-epoch"));
}

}  // namespace
}  // namespace lockstep::train
