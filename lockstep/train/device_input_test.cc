#include "lockstep/train/device_input.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/gpu.h"
#include "lockstep/train/device.h"
#include "lockstep/train/testing/tiny_recipe.h"

namespace lockstep::train {
namespace {

data::Loader make_loader() {
  const data::LaneSampler sampler({.dataset_size = 20, .lanes = 2, .batch_size = 3, .seed = 1});
  return data::Loader(std::make_shared<testing_support::Blobs>(20), sampler, {.first_lane = 0, .last_lane = 2});
}

// Every batch on `device` is the loader's.
void expect_the_loaders(at::Device device) {
  data::Loader loader = make_loader(), same = make_loader();
  DeviceInput input(loader, device);
  for (int step = 0; step < 9; ++step) {  // over the ends of epochs
    const data::StepBatch got = input.next(), want = same.next();
    EXPECT_EQ(got.position, want.position);
    EXPECT_EQ(got.global_samples, want.global_samples);
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

TEST(DeviceInput, OnAGpuRunsAhead) {
  LOCKSTEP_NEEDS_GPU();
  expect_the_loaders(open_device(DeviceKind::kCuda, 0));
}

}  // namespace
}  // namespace lockstep::train
