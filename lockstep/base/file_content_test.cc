#include "lockstep/base/file_content.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>

#include "lockstep/base/testing/temp_dir.h"

namespace lockstep {
namespace {

TEST(FileContent, IsAllOfIt) {
  const testing_support::TempDir dir;
  const std::string path = dir.path() + "/file", text = std::string(200'000, 'x') + '\0' + "end\n";
  std::ofstream(path) << text;
  EXPECT_EQ(file_content(path), text);
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_EQ(file_content(path), "");
  EXPECT_TRUE(file_content("/proc/self/stat")) << "whose size is 0";
}

TEST(FileContent, IsNothingWhereItCantBeRead) {
  const testing_support::TempDir dir;
  EXPECT_FALSE(file_content(dir.path() + "/none"));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(file_content(dir.path()));
  EXPECT_EQ(errno, EISDIR);
}

}  // namespace
}  // namespace lockstep
