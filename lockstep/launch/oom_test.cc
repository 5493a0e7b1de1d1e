#include "lockstep/launch/oom.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace lockstep::launch {
namespace {

class Oom : public testing::Test {
 protected:
  Oom() {
    std::string folder = testing::TempDir() + "/oom-XXXXXX";
    folder_ = mkdtemp(folder.data());
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }

  std::string folder_;
};

TEST_F(Oom, CountsOfVersionTwo) {
  write("memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n");
  write("memory.max", "8589934592\n");
  const OomWatch watch({folder_});
  EXPECT_EQ(watch.verdict(), "");
  write("memory.events", "low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\n");
  EXPECT_EQ(watch.verdict(), "out of memory (cgroup limit 8 GiB)");
}

TEST_F(Oom, CountsOfVersionOne) {
  write("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
  write("memory.limit_in_bytes", "9223372036854771712\n");
  const OomWatch watch({folder_});
  write("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  EXPECT_EQ(watch.verdict(), "out of memory (the machine's memory)");
}

TEST_F(Oom, UnreadableCountsSayNothing) {
  const OomWatch watch({folder_, "/no/such/folder"});
  write("memory.events", "oom_kill 7\n");
  EXPECT_EQ(watch.verdict(), "");
}

TEST(OomOwn, NobodyHasJustBeenKilledHere) { EXPECT_EQ(OomWatch().verdict(), ""); }

}  // namespace
}  // namespace lockstep::launch
