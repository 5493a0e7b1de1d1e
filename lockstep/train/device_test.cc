#include "lockstep/train/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/gpus.h"
#include "lockstep/base/testing/gpu.h"
#include "lockstep/base/testing/refusal.h"

namespace lockstep::train {
namespace {

TEST(Device, TheCpuIsThere) { EXPECT_TRUE(open_device(DeviceKind::kCpu, {.local_rank = 3, .size = 4}).is_cpu()); }

// Of a machine's GPUs and this build's library for them, whatever is missing is named.
TEST(Device, AGpuIsThereOrTheErrorSaysWhyNot) {
  const std::string why = testing_support::why_no_gpu();
  if (why.empty()) {
    const c10::Device device = open_device(DeviceKind::kCuda, {});
    EXPECT_TRUE(device.is_cuda());
    EXPECT_EQ(device.index(), 0);
    return;
  }
  const std::string error = testing_support::refusal([] { open_device(DeviceKind::kCuda, {}); });
  EXPECT_THAT(error, testing::HasSubstr(why));
}

TEST(Device, AMachineWithoutAGpuIsToldSoAndNotOfALibrary) {
  EXPECT_NO_THROW(require_gpu(DeviceKind::kCpu));
  if (visible_gpus() > 0) return;
  EXPECT_THROW(open_device(DeviceKind::kCuda, {}), ConfigError);
  EXPECT_EQ(testing_support::refusal([] {
              open_device({DeviceKind::kCuda, 1}, {});
            }),
            "--device cuda:1: no GPU can be used here; lockstep doctor says more. Leave --device out for the CPU");
  EXPECT_EQ(testing_support::refusal([] { open_cuda("--backend nccl"); }),
            "--backend nccl: no GPU can be used here; lockstep doctor says more. Leave --backend out for the CPU");
}

TEST(Device, GpusRepeatTheirBitsWhereTheUserHasNotSaidOtherwise) {
  const std::map<std::string, std::string> wanted = {{"CUBLAS_WORKSPACE_CONFIG", ":4096:8"}, {"NCCL_ALGO", "^NVLS"}};
  for (const auto& [name, value] : wanted) unsetenv(name.c_str());
  let_gpus_repeat(DeviceKind::kCpu, true);
  let_gpus_repeat(DeviceKind::kCuda, false);
  for (const auto& [name, value] : wanted) EXPECT_EQ(std::getenv(name.c_str()), nullptr) << name;
  let_gpus_repeat({DeviceKind::kCuda, 1}, true);
  for (const auto& [name, value] : wanted) EXPECT_EQ(std::getenv(name.c_str()), value);
  setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8", 1);
  setenv("NCCL_ALGO", "Ring", 1);
  let_gpus_repeat(DeviceKind::kCuda, true);
  EXPECT_STREQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), ":16:8");
  EXPECT_STREQ(std::getenv("NCCL_ALGO"), "Ring");
  for (const auto& [name, value] : wanted) unsetenv(name.c_str());
}

TEST(Device, GpusTalkThroughNccl) {
  EXPECT_EQ(backend_for(DeviceKind::kCuda, "auto"), "nccl");
  EXPECT_EQ(backend_for(DeviceKind::kCuda, "gloo"), "gloo");
  EXPECT_EQ(backend_for(DeviceKind::kCpu, "auto"), "auto");
}

}  // namespace
}  // namespace lockstep::train
