// The front as a user meets it, with shells as the programs that it launches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "lockstep/base/text.h"

namespace lockstep::front {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Front : public testing::Test {
 protected:
  // Runs `lockstep ARGUMENTS` as the line of a shell.
  int run(const std::string& arguments) {
    const int status = std::system(cat(LOCKSTEP_BIN_DIR "/lockstep ", arguments, " 2>", path_).c_str());
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    err_ = text.str();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void TearDown() override { unlink(path_.c_str()); }

  std::string path_ = testing::TempDir() + "front." + std::to_string(getpid());
  std::string err_;
};

TEST_F(Front, HelpOfHelpIsHelp) {
  for (const char* line : {"help", "help --help", "help help", "--help -h", "help -h", "help train", "help launch"}) {
    EXPECT_EQ(run(cat(line, " >/dev/null")), 0) << line << ": " << err_;
  }
  EXPECT_EQ(run("help trian"), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean train?"));
  EXPECT_EQ(run("evaluate"), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean eval?"));
  EXPECT_EQ(run("bench stpe"), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean step?"));
}

TEST_F(Front, TwoDashesEndTheOptionsOfLaunch) {
  EXPECT_EQ(run("launch -- test a = a"), 0) << err_;
  EXPECT_EQ(run("launch --nproc 2 -- test a = b"), 1);
}

TEST_F(Front, AFullDiskIsAnError) {
  EXPECT_EQ(run("launch -- echo hi >/dev/full"), 74);
  EXPECT_THAT(err_, StartsWith("error: standard output: "));
  EXPECT_EQ(run("help >/dev/full"), 74);
}

TEST_F(Front, AnOptionWithoutItsValueIsToldSo) {
  EXPECT_EQ(run("train mnist --lr"), 2);
  EXPECT_EQ(err_, "error: --lr: expected a value, as in --lr X; --help lists the options\n");
}

}  // namespace
}  // namespace lockstep::front
