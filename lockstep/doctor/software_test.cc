#include "lockstep/doctor/software.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Software sound() {
  return {.libtorch = Version{2, 11, 0},
          .built_against = Version{2, 11, 0},
          .libtorch_cuda = Version{13, 0},
          .driver = Version{580, 82, 7},
          .driver_cuda = Version{13, 0},
          .runtime = Version{13, 0},
          .toolkit = Version{13, 1},
          .cudnn = Version{9, 10, 2},
          .nccl = Version{2, 28, 3},
          .mpi = "",
          .torch_folder = "/torch",
          .gpus = {{.name = "NVIDIA H200", .bytes = 1}},
          .usable_gpus = 1};
}

TEST(Misfits, NoneWhereAllFits) {
  EXPECT_THAT(misfits(sound()), IsEmpty());
  auto newer_driver = sound();
  newer_driver.driver_cuda = Version{14, 0};
  EXPECT_THAT(misfits(newer_driver), IsEmpty());
}

TEST(Misfits, AMachineWithoutGpusNeedsNoCuda) {
  EXPECT_THAT(misfits({.libtorch = Version{2, 11, 0}, .libtorch_cuda = Version{13, 0}}), IsEmpty());
}

TEST(Misfits, WhatTheLoaderLacksComesFirst) {
  auto s = sound();
  s.libtorch = Version{2, 10, 0};
  s.unloadable = {"libstdc++.so.6: too old"};
  EXPECT_THAT(misfits(s), ElementsAre("libstdc++.so.6: too old", HasSubstr("libtorch 2.10.0")));
}

TEST(Misfits, AnOldDriver) {
  auto s = sound();
  s.driver = Version{550, 54, 15};
  s.driver_cuda = Version{12, 4};
  EXPECT_THAT(misfits(s), ElementsAre("driver 550.54.15: offers CUDA 12.4, the runtime is 13.0; update the driver"));
}

TEST(Misfits, AnotherRuntimeOrToolkitThanLibtorchs) {
  auto s = sound();
  s.runtime = Version{12, 8};
  s.toolkit = Version{12, 4};
  EXPECT_THAT(misfits(s), ElementsAre(HasSubstr("CUDA runtime 12.8: libtorch was built for CUDA 13.0"),
                                      HasSubstr("CUDA toolkit 12.4: libtorch was built for CUDA 13.0")));
}

TEST(Misfits, LibtorchGoneOrChanged) {
  auto s = sound();
  s.libtorch = Version{2, 10, 0};
  EXPECT_THAT(misfits(s), ElementsAre("libtorch 2.10.0: Lockstep was built against 2.11.0; build it anew"));
  s.libtorch.reset();
  EXPECT_THAT(misfits(s), ElementsAre(HasSubstr("libtorch: not found in /torch")));
  s.torch_folder = "";
  EXPECT_THAT(misfits(s), ElementsAre("libtorch: not found; install it again"));
}

TEST(Misfits, AGpuWithoutItsLibraries) {
  auto s = sound();
  s.cudnn.reset();
  s.nccl.reset();
  EXPECT_THAT(misfits(s), ElementsAre(HasSubstr("NVIDIA H200: no cuDNN"), HasSubstr("NVIDIA H200: no NCCL")));
  s = {.libtorch = s.libtorch, .gpus = s.gpus};
  EXPECT_EQ(misfits(s).size(), 4u);
}

TEST(Misfits, AGpuThatCudaCantUse) {
  auto s = sound();
  s.usable_gpus = 0;
  EXPECT_THAT(misfits(s), ElementsAre(HasSubstr("NVIDIA H200: CUDA can't use it; see CUDA_VISIBLE_DEVICES")));
}

TEST(Software, LibtorchIsThatOfTheFolder) {
  const testing_support::TempDir dir;
  std::ofstream(dir / "version.py") << "__version__ = '2.9.1+cpu'\n";
  const auto software = find_software(dir.path());
  EXPECT_EQ(software.libtorch, (Version{2, 9, 1}));
  EXPECT_FALSE(find_software("").libtorch);
  ASSERT_TRUE(software.built_against);
  EXPECT_NE(software.libtorch, software.built_against);
}

}  // namespace
}  // namespace lockstep::doctor
