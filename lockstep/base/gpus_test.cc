#include "lockstep/base/gpus.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/testing/gpu.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep {
namespace {

TEST(Gpus, WithoutADriverThereAreNone) {
  EXPECT_EQ(gpus_of_driver("no-such-driver.so"), 0);
  EXPECT_EQ(gpus_of_driver("libc.so.6"), 0);
  if (!testing_support::has_gpu_file()) EXPECT_EQ(visible_gpus(), 0);
}

// testing/fake_driver.cc: three GPUs.
TEST(Gpus, AreAtTheNumaNodesOfTheirPciDevices) {
  const testing_support::TempDir dir;
  for (const auto& [bus, node] : {std::pair("0000:3b:00.0", 1), std::pair("0000:af:00.0", -1)}) {
    std::filesystem::create_directories(dir / bus);
    std::ofstream(dir / bus + "/numa_node") << node << '\n';
  }
  const auto driver = std::filesystem::canonical("/proc/self/exe").parent_path() / "liblockstep_fake_driver.so";
  EXPECT_EQ(gpus_of_driver(driver.c_str()), 3);
  EXPECT_EQ(numa_nodes_of_driver(driver.c_str(), dir / "."), (std::vector<int>{1, 0, 0}));
  EXPECT_TRUE(numa_nodes_of_driver("no-such-driver.so", dir / ".").empty());
}

TEST(Gpus, OfARankIsThatOfItsLocalRankWhereAllAreSeen) {
  EXPECT_EQ(own_gpu(0, 1, 1), 0);
  EXPECT_EQ(own_gpu(3, 4, 4), 3);
  EXPECT_EQ(own_gpu(1, 2, 8), 1);
}

TEST(Gpus, OfARankThatSeesOneIsThatOne) { EXPECT_EQ(own_gpu(3, 4, 1), 0); }

TEST(Gpus, TooFewGiveNoneARank) {
  EXPECT_EQ(own_gpu(3, 4, 2), std::nullopt);
  EXPECT_EQ(own_gpu(0, 1, 0), std::nullopt);
}

}  // namespace
}  // namespace lockstep
