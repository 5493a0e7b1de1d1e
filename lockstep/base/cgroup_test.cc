#include "lockstep/base/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class CgroupsTest : public testing::Test {
 protected:
  std::string root_ = testing::TempDir() + "cgroup." + std::to_string(getpid());
  void TearDown() override { fs::remove_all(root_); }

  void file(const std::string& name, const std::string& content) {
    fs::create_directories(fs::path(root_ + '/' + name).parent_path());
    std::ofstream(root_ + '/' + name) << content;
  }
  Cgroups groups() const { return Cgroups(root_ + "/list", root_); }
};

TEST_F(CgroupsTest, CachedFilesAreFreeMemory) {
  file("list", "0::/user/job\n");
  file("user/job/memory.max", "8000000000\n");
  file("user/job/memory.current", "7900000000\n");
  file("user/job/memory.stat",
       "anon 1900000000\nfile 6000000000\ninactive_file 4000000000\nactive_file 1000000000\nslab_reclaimable "
       "500000000\n");
  EXPECT_EQ(groups().memory(), 8000000000u);
  EXPECT_EQ(groups().memory_left(), 5600000000u);
}

TEST_F(CgroupsTest, TheTightestGroupCounts) {
  file("list", "0::/user/job\n");
  file("user/job/memory.max", "max\n");
  file("user/job/cpu.max", "max 100000\n");
  file("user/memory.max", "4000\n");
  file("user/memory.current", "1000\n");
  file("user/cpu.max", "150000 100000\n");
  file("memory.max", "9000\n");
  EXPECT_EQ(groups().memory(), 4000u);
  EXPECT_EQ(groups().memory_left(), 3000u);
  EXPECT_EQ(groups().cpus(), 1.5);
}

TEST_F(CgroupsTest, Version1CountsToo) {
  file("list", "7:memory:/job\n4:cpu,cpuacct:/job\n1:name=systemd:/x\n");
  file("memory/job/memory.limit_in_bytes", "8000\n");
  file("memory/job/memory.usage_in_bytes", "7000\n");
  file("memory/job/memory.stat", "cache 5000\ninactive_file 1\ntotal_inactive_file 3000\ntotal_active_file 1000\n");
  file("memory/memory.limit_in_bytes", "9223372036854771712\n");
  file("cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
  file("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  file("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  file("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(groups().memory(), 8000u);
  EXPECT_EQ(groups().memory_left(), 5000u);
  EXPECT_EQ(groups().cpus(), 2.5);
}

// A container sees its own group at the root, and the host's path in the list.
TEST_F(CgroupsTest, AContainersLimitsAreAtTheRoot) {
  file("list", "0::/host/path/docker-1\n");
  file("memory.max", "5000\n");
  EXPECT_EQ(groups().memory_left(), 5000u);
}

TEST_F(CgroupsTest, WithoutLimitsThereAreNone) {
  file("list", "0::/\n");
  EXPECT_EQ(groups().memory(), std::nullopt);
  EXPECT_EQ(groups().memory_left(), std::nullopt);
  EXPECT_EQ(groups().cpus(), std::nullopt);
}

}  // namespace
}  // namespace lockstep
