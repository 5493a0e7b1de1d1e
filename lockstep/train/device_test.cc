#include "lockstep/train/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

TEST(Device, TheCpuIsThere) { EXPECT_TRUE(open_device(DeviceKind::kCpu, 3).is_cpu()); }

TEST(Device, AGpuIsThereOrTheErrorSaysWhyNot) {
  try {
    EXPECT_TRUE(open_device(DeviceKind::kCuda, 0).is_cuda());
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::AnyOf(testing::HasSubstr("--device cuda"), testing::HasSubstr("backend nccl")));
  }
}

TEST(Device, GpusTalkThroughNccl) {
  EXPECT_EQ(backend_for(DeviceKind::kCuda, "auto"), "nccl");
  EXPECT_EQ(backend_for(DeviceKind::kCuda, "gloo"), "gloo");
  EXPECT_EQ(backend_for(DeviceKind::kCpu, "auto"), "auto");
}

}  // namespace
}  // namespace lockstep::train
