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

TEST(DataFile, ReadsPartsIntoMemoryThatIsKept) {
  const TempDir dir;
  const DataFile file(dir.write("a", "0123456789"));
  std::vector<uint8_t> memory;
  const auto part = [&](uint64_t offset, size_t count) {
    const auto bytes = file.part(offset, count, memory);
    return std::string(bytes.begin(), bytes.end());
  };
  file.will_need(2, 5);
  EXPECT_EQ(part(2, 5), "23456");
  EXPECT_EQ(part(9, 1), "9");
  EXPECT_EQ(part(10, 0), "");
  EXPECT_THAT(data_error([&] { part(9, 2); }), AllOf(HasSubstr(dir / "a: byte 9"), HasSubstr("cut short")));
  EXPECT_THAT(data_error([&] { part(1ull << 63, 1ull << 63); }), HasSubstr("cut short"));
  EXPECT_EQ(read_whole(dir / "a", memory).size(), 10u);
  EXPECT_THAT(data_error([&] { read_whole(dir / "a", memory, 9); }), HasSubstr("too many"));
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

TEST(DataFile, ShowsItsNameOnOneLine) {
  const TempDir dir;
  const std::string name = "two\nlines \x1b[2J";
  const std::string shown = "two\\nlines \\x1b[2J: ";
  EXPECT_THAT(data_error([&] { DataFile(dir / name); }), HasSubstr(shown));
  const DataFile file(dir.write(name, "0123456789"));
  EXPECT_EQ(file.path(), dir / name);
  std::vector<uint8_t> memory;
  EXPECT_THAT(data_error([&] { file.all(9); }), HasSubstr(shown));
  EXPECT_THAT(data_error([&] { file.part(9, 2, memory); }), HasSubstr(shown));
}

TEST(DataFile, RefusesDirectoriesAndPipesWithoutWaiting) {
  const TempDir dir;
  EXPECT_THAT(data_error([&] { DataFile(dir.path()); }), HasSubstr("is a directory"));
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(data_error([&] { DataFile(dir / "pipe"); }), HasSubstr("pipe"));
  ASSERT_EQ(mknod((dir / "socket").c_str(), S_IFSOCK | 0600, 0), 0);
  EXPECT_THAT(data_error([&] { DataFile(dir / "socket"); }), HasSubstr("socket"));
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
