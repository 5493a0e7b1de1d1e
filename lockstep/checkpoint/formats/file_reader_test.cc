#include "lockstep/checkpoint/formats/file_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;
using testing::HasSubstr;

TEST(FileReader, ReadsWhatItIsAskedFor) {
  const TempDir dir;
  write_file(dir / "f", "0123456789");
  const InputFile file = open_input(dir / "f");
  EXPECT_EQ(file.bytes, 10u);
  std::string content(4, ' ');
  read_at(file.fd.get(), "f", 3, content.data(), 4);
  EXPECT_EQ(content, "3456");
}

TEST(FileReader, SaysThatAFileEndsBefore) {
  const TempDir dir;
  write_file(dir / "f", "0123456789");
  const InputFile file = open_input(dir / "f");
  std::string content(4, ' ');
  EXPECT_EQ(error_of<DataError>([&] { read_at(file.fd.get(), "f", 8, content.data(), 4); }), "f: cut short at byte 10");
}

TEST(FileReader, RefusesWhatIsNoFile) {
  const TempDir dir;
  EXPECT_THAT(error_of<DataError>([&] { open_input(dir / "none"); }), HasSubstr("no such file"));
  EXPECT_THAT(error_of<DataError>([&] { open_input(dir.path()); }), HasSubstr("a directory"));
  EXPECT_THAT(error_of<DataError>([&] { open_input("/dev/zero"); }), HasSubstr("not a regular file"));
  EXPECT_THAT(error_of<DataError>([&] { open_input("/etc/passwd/x"); }), HasSubstr("no such file"));
  EXPECT_THAT(error_of<IoError>([&] { open_input(std::string(5000, 'x')); }), HasSubstr("can't be opened"));
}

}  // namespace
}  // namespace lockstep::checkpoint
