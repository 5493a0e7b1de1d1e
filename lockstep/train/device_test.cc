#include "lockstep/train/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/gpu.h"
#include "lockstep/base/testing/refusal.h"

namespace lockstep::train {
namespace {

TEST(Device, TheCpuIsThere) { EXPECT_TRUE(open_device(DeviceKind::kCpu, 3).is_cpu()); }

// Of a machine's GPUs and this build's library for them, whatever is missing is named.
TEST(Device, AGpuIsThereOrTheErrorSaysWhyNot) {
  const std::string why = testing_support::why_no_gpu();
  if (why.empty()) {
    const c10::Device device = open_device(DeviceKind::kCuda, 0);
    EXPECT_TRUE(device.is_cuda());
    EXPECT_EQ(device.index(), 0);
    return;
  }
  const std::string error = testing_support::refusal([] { open_device(DeviceKind::kCuda, 0); });
  EXPECT_THAT(error, testing::HasSubstr(why));
}

TEST(Device, AMachineWithoutAGpuIsToldSoAndNotOfALibrary) {
  EXPECT_EQ(gpus_of_driver("no-such-driver.so"), 0);
  EXPECT_EQ(gpus_of_driver("libc.so.6"), 0);
  EXPECT_NO_THROW(require_gpu(DeviceKind::kCpu));
  if (gpus_of_driver() > 0) return;
  try {
    open_device(DeviceKind::kCuda, 0);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("--device cuda: no GPU"));
  }
}

TEST(Device, CublasRepeatsItsBitsWhereTheUserHasNotSaidOtherwise) {
  constexpr const char* kName = "CUBLAS_WORKSPACE_CONFIG";
  unsetenv(kName);
  let_cublas_repeat(DeviceKind::kCpu, true);
  let_cublas_repeat(DeviceKind::kCuda, false);
  EXPECT_EQ(std::getenv(kName), nullptr);
  let_cublas_repeat(DeviceKind::kCuda, true);
  EXPECT_STREQ(std::getenv(kName), ":4096:8");
  setenv(kName, ":16:8", 1);
  let_cublas_repeat(DeviceKind::kCuda, true);
  EXPECT_STREQ(std::getenv(kName), ":16:8");
}

TEST(Device, GpusTalkThroughNccl) {
  EXPECT_EQ(backend_for(DeviceKind::kCuda, "auto"), "nccl");
  EXPECT_EQ(backend_for(DeviceKind::kCuda, "gloo"), "gloo");
  EXPECT_EQ(backend_for(DeviceKind::kCpu, "auto"), "auto");
}

}  // namespace
}  // namespace lockstep::train
