#include "lockstep/train/device_input.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/gpu.h"
#include "lockstep/train/device.h"
#include "lockstep/train/testing/tiny_recipe.h"

namespace lockstep::train {
namespace {

// Five of its samples are damaged.
struct Damaged final : testing_support::Blobs {
  using Blobs::Blobs;
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, data::ReadStats& stats) const override {
    if (index % 4 == 2) throw DataError(name_of(index), ": is damaged");
    Blobs::read(index, draw, rows, stats);
  }
};

data::Loader make_loader(int64_t skip_bad = 5) {
  const data::LaneSampler sampler({.dataset_size = 20, .lanes = 2, .batch_size = 3, .seed = 1});
  return data::Loader(std::make_shared<Damaged>(20), sampler,
                      {.first_lane = 0, .last_lane = 2, .skipped = std::make_shared<data::SkippedSamples>(skip_bad)});
}

// Every batch on `device` is the loader's.
void expect_the_loaders(at::Device device) {
  data::Loader loader = make_loader(), same = make_loader();
  DeviceInput input(loader, device);
  for (int step = 0; step < 9; ++step) {  // over the ends of epochs
    const data::StepBatch got = input.next(), want = same.next();
    EXPECT_EQ(got.position, want.position);
    EXPECT_EQ(got.global_samples, want.global_samples);
    EXPECT_EQ(got.skipped, want.skipped) << step;
    EXPECT_EQ(loader.skipped()->all(), same.skipped()->all()) << step;
    ASSERT_EQ(got.lanes.size(), want.lanes.size());
    for (size_t i = 0; i < got.lanes.size(); ++i) {
      EXPECT_EQ(got.lanes[i].lane, want.lanes[i].lane);
      EXPECT_EQ(got.lanes[i].data().device(), device);
      EXPECT_TRUE(at::equal(got.lanes[i].data().cpu(), want.lanes[i].data()));
      EXPECT_TRUE(at::equal(got.lanes[i].target().cpu(), want.lanes[i].target()));
    }
  }
}

TEST(DeviceInput, OnTheCpuIsTheLoader) { expect_the_loaders(at::kCPU); }

// As on a GPU, whose batches are taken a step ahead, also beyond the last one.
TEST(DeviceInput, BadSamplesAreListedWhenTheirBatchIsUsed) {
  data::Loader loader = make_loader(), same = make_loader();
  OneAhead<data::ReadStep> ahead([&] { return loader.read(); });
  ahead.take();
  size_t most_in_a_step = 0;
  for (int step = 0; step < 9; ++step) {
    const data::StepBatch got = loader.settle(ahead.next()), want = same.next();
    ahead.take();
    EXPECT_EQ(got.position, want.position);
    EXPECT_EQ(got.skipped, want.skipped) << step;
    ASSERT_EQ(loader.skipped()->all(), same.skipped()->all()) << step;
    if (step > 0) most_in_a_step = std::max(most_in_a_step, got.skipped.size());
  }
  EXPECT_EQ(same.skipped()->all().size(), 5u);
  EXPECT_GT(most_in_a_step, 0u) << "or nothing is told of what is ahead";
}

TEST(DeviceInput, TooManyBadSamplesFailTheStepThatNeedsThem) {
  data::Loader loader = make_loader(/*skip_bad=*/2), same = make_loader(/*skip_bad=*/2);
  OneAhead<data::ReadStep> ahead([&] { return loader.read(); });
  ahead.take();
  const auto step_of_failure = [](const auto& next) {
    int step = 0;
    try {
      for (; step < 9; ++step) next();
    } catch (const DataError&) {
    }
    return step;
  };
  const int failed = step_of_failure([&] { loader.settle(ahead.next()), ahead.take(); });
  EXPECT_EQ(failed, step_of_failure([&] { same.next(); }));
  EXPECT_LT(failed, 9);
  EXPECT_EQ(loader.position(), same.position()) << "the step may be asked for again";
  EXPECT_EQ(loader.skipped()->all(), same.skipped()->all());
}

TEST(DeviceInput, OnAGpuRunsAhead) {
  LOCKSTEP_NEEDS_GPU();
  expect_the_loaders(open_device(DeviceKind::kCuda, 0));
}

}  // namespace
}  // namespace lockstep::train
