#include "lockstep/datasets/files/file_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/datasets/files/testing/files.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using testing::data_error;
using ::testing::HasSubstr;
using testing::TempDir;

std::string text(const Bytes& bytes) { return {bytes.span().begin(), bytes.span().end()}; }

TEST(DataFile, ReadsHeadAndAll) {
  const TempDir dir;
  const DataFile file(dir.write("a", "0123456789"));
  EXPECT_EQ(file.size(), 10u);
  EXPECT_EQ(text(file.head(4)), "0123");
  EXPECT_EQ(text(file.head(40)), "0123456789");
  EXPECT_EQ(text(file.all(10)), "0123456789");
}

TEST(DataFile, RefusesMoreThanTheLimit) {
  const TempDir dir;
  const DataFile file(dir.write("a", "0123456789"));
  EXPECT_THAT(data_error([&] { file.all(9); }), AllOf(HasSubstr(dir / "a"), HasSubstr("10 bytes")));
}

TEST(DataFile, NamesAMissingFile) {
  const TempDir dir;
  EXPECT_THAT(data_error([&] { DataFile(dir / "none"); }), AllOf(HasSubstr(dir / "none"), HasSubstr("No such file")));
}

TEST(DataFile, RefusesDirectoriesAndPipesWithoutWaiting) {
  const TempDir dir;
  EXPECT_THAT(data_error([&] { DataFile(dir.path()); }), HasSubstr("is a directory"));
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(data_error([&] { DataFile(dir / "pipe"); }), HasSubstr("pipe"));
}

TEST(DataFile, NamesAnUnreadableFile) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read every file";
  const TempDir dir;
  ASSERT_EQ(chmod(dir.write("a", "x").c_str(), 0), 0);
  EXPECT_THAT(data_error([&] { DataFile(dir / "a"); }), HasSubstr("Permission denied"));
}

TEST(DataFile, NoticesAFileThatShrinks) {
  const TempDir dir;
  const DataFile file(dir.write("a", "0123456789"));
  ASSERT_EQ(truncate((dir / "a").c_str(), 3), 0);
  EXPECT_THAT(data_error([&] { file.all(10); }), HasSubstr("byte 3: the file ends here"));
}

}  // namespace
}  // namespace lockstep::datasets
