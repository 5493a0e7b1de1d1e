#include "lockstep/launch/runs/file_end.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/shared_memory.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::launch {
namespace {

using testing::ElementsAre;

class FileEnd : public testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(path_) << text; }
  std::string last_lines(uint64_t lines) {
    const Descriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    const std::string all = end_of(path_, 1 << 20);
    return all.substr(begin_of_lines(file.get(), all.size(), lines));
  }
  testing_support::TempDir dir_;
  std::string path_ = dir_ / "file";
};

TEST_F(FileEnd, HasAtMostItsBytes) {
  EXPECT_EQ(end_of(path_, 10), "");
  write("0123456789");
  EXPECT_EQ(end_of(path_, 3), "789");
  EXPECT_EQ(end_of(path_, 100), "0123456789");
}

TEST_F(FileEnd, LastLinesMayLackTheirNewline) {
  for (const std::string text : {"a\nb\n\nc\n", "a\nb\n\nc"}) {
    write(text);
    const std::string end = text.substr(6);
    EXPECT_EQ(last_lines(0), "");
    EXPECT_EQ(last_lines(1), "c" + end);
    EXPECT_EQ(last_lines(2), "\nc" + end);
    EXPECT_EQ(last_lines(3), "b\n\nc" + end);
    EXPECT_EQ(last_lines(4), text);
    EXPECT_EQ(last_lines(100), text);
  }
  write("");
  EXPECT_EQ(last_lines(3), "");
}

TEST_F(FileEnd, LinesMayBeLongerThanABlock) {
  const std::string line(200'000, 'x');
  write("a\n" + line + "\n" + line + "\nend\n");
  EXPECT_EQ(last_lines(2), line + "\nend\n");
  EXPECT_EQ(last_lines(3), line + "\n" + line + "\nend\n");
}

TEST_F(FileEnd, LinesEndWithNewlines) {
  EXPECT_THAT(whole_lines("a\n\nbc\nd"), ElementsAre("a", "", "bc"));
  EXPECT_THAT(whole_lines(""), ElementsAre());
}

}  // namespace
}  // namespace lockstep::launch
