#include "lockstep/train/device_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/gpu.h"
#include "lockstep/train/device.h"

namespace lockstep::train {
namespace {

comm::GpuFacts h200() {
  return {.name = "NVIDIA H200",
          .id = "GPU-5f0c",
          .capability_major = 9,
          .capability_minor = 0,
          .bytes = uint64_t{140} << 30,
          .driver = 13000,
          .runtime = 12080,
          .cudnn = 91002,
          .nccl = 22803};
}

TEST(DeviceFacts, OfACpuAreItsWidestVectorsAndItsModel) {
  EXPECT_EQ(facts_of({.amx_bf16 = true, .avx512_bf16 = true, .avx512 = true, .model = "A CPU"}).name, "CPU (AMX)");
  EXPECT_EQ(facts_of({.avx512_bf16 = true, .avx512 = true}).name, "CPU (AVX512-BF16)");
  EXPECT_EQ(facts_of({.avx512 = true}).name, "CPU (AVX-512)");
  EXPECT_EQ(facts_of(CpuFeatures{}).name, "CPU");
  const DeviceFacts here = facts_of(c10::Device(c10::kCPU));
  EXPECT_THAT(here.name, testing::StartsWith("CPU"));
  EXPECT_EQ(here.details, detect_cpu_features().model);
  EXPECT_EQ(here.id, "");
}

TEST(DeviceFacts, OfAGpuAreItsNameAndTheVersionsBelowIt) {
  const DeviceFacts facts = facts_of(c10::Device(c10::kCUDA, 1), h200());
  EXPECT_EQ(facts.name, "NVIDIA H200 (cuda:1)");
  EXPECT_EQ(facts.details,
            "compute capability 9.0, 140 GiB; driver for CUDA 13.0, CUDA 12.8, cuDNN 9.10.2, NCCL 2.28.3");
  EXPECT_EQ(facts.id, "GPU-5f0c");
  EXPECT_EQ(log_line(facts), "computes on " + facts.name + ", " + facts.details);
  comm::GpuFacts bare = h200();
  bare.cudnn = 0;
  EXPECT_THAT(facts_of(c10::Device(c10::kCUDA, 1), bare).details, testing::HasSubstr(", no cuDNN, NCCL"));
}

TEST(DeviceFacts, SharedGpusAreThoseOfSeveralRanks) {
  EXPECT_EQ(shared_gpus({}), "");
  EXPECT_EQ(shared_gpus({{"a", "cuda:0"}, {"b", "cuda:1"}}), "");
  EXPECT_EQ(shared_gpus({{"a", "cuda:0"}, {"b", "cuda:0"}}), "") << "each sees one, and they are two";
  EXPECT_EQ(shared_gpus({{"a", "cuda:0"}, {"a", "cuda:0"}}), "2 ranks share cuda:0");
  EXPECT_EQ(shared_gpus({{"b", "cuda:0"}, {"a", "cuda:1"}, {"b", "cuda:0"}, {"a", "cuda:1"}, {"b", "cuda:0"}}),
            "3 ranks share cuda:0, 2 share cuda:1");
}

TEST(DeviceFacts, GpuSaysWhatItIs) {
  LOCKSTEP_NEEDS_GPU();
  const DeviceFacts facts = facts_of(open_device(DeviceKind::kCuda, {}));
  EXPECT_THAT(facts.name, testing::HasSubstr("(cuda:0)"));
  EXPECT_THAT(facts.id, testing::StartsWith("GPU-"));
  EXPECT_THAT(facts.details, testing::MatchesRegex("compute capability [0-9.]+, .*; driver for CUDA [0-9.]+, CUDA "
                                                   "[0-9.]+, cuDNN [0-9.]+, NCCL [0-9.]+"));
}

}  // namespace
}  // namespace lockstep::train
