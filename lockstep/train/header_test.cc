#include "lockstep/train/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Header, SaysWhatDecidesTheNumbers) {
  Plan plan;
  plan.lanes = 4;
  plan.batch_size = 32;
  plan.steps_per_epoch = 55;
  plan.total_steps = 275;
  plan.optimizer = "sgd";
  plan.schedule = {.shape = schedule::CosineLr{.t_max = 225}, .base_lr = 0.1, .warmup = 50};
  HeaderFacts facts{.recipe = "mnist",
                    .folder = "runs/mnist-1",
                    .libtorch = "/venv/torch (/venv/bin/python3)",
                    .device = "CPU",
                    .precision = "O1 bfloat16",
                    .ranks = 2,
                    .backend = "shm",
                    .bits = "this world size only",
                    .sync_bn = true,
                    .threads = 1,
                    .snapshot_keeper = true,
                    .parameters = 21430,
                    .network = "3 input channels, 2 classes",
                    .train_data = "MNIST, 7000 images",
                    .test_data = "MNIST",
                    .validation_data = "",
                    .input = "a step ahead, about 49 MiB on the device",
                    .train_samples = 7000,
                    .test_samples = 1000,
                    .validation_samples = 0,
                    .sharding = "state and weights shared by 2 ranks",
                    .chosen = "--lr 0.1 --ema 0.99",
                    .first_step = 60,
                    .keep = 3,
                    .resumed_from = "last.pt",
                    .changes = {"--clip 0 -> 1"}};
  const std::string text = header(facts, plan);
  EXPECT_THAT(text, HasSubstr("\n  libtorch    /venv/torch (/venv/bin/python3)\n"));
  EXPECT_THAT(text, HasSubstr("ranks       2 (shm), 1 thread each, 4 lanes"));
  EXPECT_THAT(text, HasSubstr("batch       32 a lane, 128 global\n"));
  EXPECT_THAT(text, HasSubstr("statistics over all 4 lanes; 2 times the activations of a lane in memory"));
  EXPECT_THAT(text, HasSubstr("parameters  21,430\n  network     3 input channels, 2 classes\n"));
  EXPECT_THAT(text, HasSubstr("checkpoints at the end, the last 3 and the best stay\n"));
  EXPECT_THAT(text, HasSubstr("train       MNIST, 7000 images\n"));
  EXPECT_THAT(text, HasSubstr("input       a step ahead, about 49 MiB on the device\n"));
  EXPECT_THAT(text,
              HasSubstr("lr 0.1 cosine to 0 at step 275, warm-up 50 steps, state and weights shared by 2 ranks\n"));
  EXPECT_THAT(text, HasSubstr("options     --lr 0.1 --ema 0.99\n"));
  EXPECT_THAT(text, HasSubstr("from epoch 2 step 61\n")) << "steps count from 1";
  EXPECT_THAT(text, HasSubstr("resumed     last.pt\n  changed     --clip 0 -> 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("validation")));
  EXPECT_THAT(text, HasSubstr("\n  bits        this world size only\n"));
  EXPECT_THAT(text, Not(HasSubstr("launcher")));
}

TEST(Header, ClaimsBitsWhereTheyHold) {
  EXPECT_EQ(bits_text(at::kCPU, false, true), "the same at any number of ranks, for this build on this kind of CPU");
  EXPECT_EQ(bits_text(at::kCPU, true, false), "this world size only");
  EXPECT_EQ(bits_text(at::kCUDA, true, true), "the same at any number of ranks, for this build on this kind of GPU");
  EXPECT_EQ(bits_text(at::kCUDA, false, true), "may differ from run to run; --deterministic on repeats them");
}

TEST(Header, SaysWhereAForkComesFromAndWhatWasDropped) {
  Plan plan;
  plan.steps_per_epoch = 1;
  const std::string file = "runs/a/checkpoints/step-000200.pt";
  EXPECT_THAT(header({.recipe = "mnist"}, plan), Not(HasSubstr("libtorch"))) << "for it is no bundle's";
  EXPECT_THAT(header({.program = "my_program", .recipe = "spiral", .resumed_from = file, .forked = true}, plan),
              testing::AllOf(HasSubstr("my_program train spiral"),
                             HasSubstr("forked      from " + file + "; its run stays as it is\n")));
  EXPECT_THAT(header({.recipe = "mnist", .resumed_from = file, .dropped = {"step-000300.pt", "best.pt"}}, plan),
              HasSubstr("resumed     " + file + "\n  dropped     step-000300.pt, best.pt\n"));
  EXPECT_THAT(header({.recipe = "mnist", .loaded = "net.pt, the names without module."}, plan),
              HasSubstr("  weights     net.pt, the names without module.\n"));
}

TEST(Header, ABatchLargerThanTheDataSaysWhatItBecomes) {
  Plan plan;
  plan.lanes = 2;
  plan.batch_size = 512;
  plan.steps_per_epoch = 1;
  const std::string text = header({.ranks = 1, .train_samples = 100}, plan);
  EXPECT_THAT(text,
              HasSubstr("batch       512 a lane, 1024 global; a step has all 100 samples, for there are no more\n"));
  EXPECT_THAT(text, HasSubstr("from epoch 1 step 1\n"));
}

TEST(Header, AScaledRateIsShown) {
  Plan plan;
  plan.lanes = 8;
  plan.batch_size = 32;
  plan.schedule = {.base_lr = 0.4, .warmup = 10, .warmup_start = 0.25};
  plan.lr_scaling = LrScaling{.rule = "linear", .unscaled_lr = 0.1, .factor = 4, .base_batch = 64};
  plan.steps_per_epoch = 1;
  const std::string text =
      header({.recipe = "imagenet", .recipe_options = "--arch resnet18", .folder = "runs/a"}, plan);
  EXPECT_THAT(text, HasSubstr("lockstep train imagenet --arch resnet18 -> runs/a"));
  EXPECT_THAT(text,
              HasSubstr("lr 0.4 = 0.1 × 4 (linear, global batch 256 ÷ 64), constant, warm-up 10 steps from lr 0.1"));
}

}  // namespace
}  // namespace lockstep::train
