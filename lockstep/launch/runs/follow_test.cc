#include "lockstep/launch/runs/follow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/train/folder/run_lock.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing_support::refusal;

class Follow : public testing::Test {
 protected:
  Follow() { fs::create_directories(dir_ / "logs"); }
  void append(const std::string& text) { std::ofstream(log_, std::ios::app) << text; }

  testing_support::TempDir dir_;
  std::string log_ = dir_ / "logs/rank0.log";
};

TEST_F(Follow, AFileIsReadAsItGrows) {
  FollowedFile file(log_, std::nullopt);
  EXPECT_EQ(file.next().text, "") << "it is not there yet";
  append("a\n");
  EXPECT_EQ(file.next().text, "a\n");
  EXPECT_EQ(file.next().text, "");
  append("b");
  EXPECT_EQ(file.next().text, "b");
}

TEST_F(Follow, AFileThatIsCutOffBeginsAnew) {
  append("a long line\n");
  FollowedFile file(log_, std::nullopt);
  file.next();
  std::ofstream(log_) << "new\n";
  const auto cut = file.next();
  EXPECT_TRUE(cut.anew);
  EXPECT_EQ(cut.text, "new\n");
  fs::remove(log_);
  EXPECT_EQ(file.next().text, "") << "removed";
  append("another file\n");
  const auto replaced = file.next();
  EXPECT_TRUE(replaced.anew);
  EXPECT_EQ(replaced.text, "another file\n");
  EXPECT_FALSE(file.next().anew);
}

TEST_F(Follow, MayBeginWithTheLastLines) {
  append("a\nb\nc\n");
  FollowedFile file(log_, 2);
  EXPECT_EQ(file.next().text, "b\nc\n");
}

TEST_F(Follow, GoesOnUntilTheRunHasEnded) {
  append("a\n");
  std::string shown;
  int calls = 0;
  std::optional<train::RunLock> lock = train::RunLock::take(dir_.path(), "--out a");
  const auto show = [&](const std::string& text) {
    shown += text;
    if (++calls < 3) append("more\n");
    if (calls == 3) lock.reset();
    return true;
  };
  show_log(dir_.path(), log_, {.follow = true, .interval = std::chrono::milliseconds(1)}, show, [](const auto&) {});
  EXPECT_EQ(shown, "a\nmore\nmore\n");
}

TEST_F(Follow, EndsWithItsReader) {
  append("a\n");
  const auto lock = train::RunLock::take(dir_.path(), "--out a");
  int calls = 0;
  show_log(
      dir_.path(), log_, {.follow = true}, [&](const auto&) { return ++calls, false; }, [](const auto&) {});
  EXPECT_EQ(calls, 1);
}

TEST_F(Follow, EndsWhenItsReaderLeavesWhileNothingComes) {
  append("a\n");
  const auto lock = train::RunLock::take(dir_.path(), "--out a");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  show_log(
      dir_.path(), log_, {.follow = true, .out_fd = ends[1]}, [](const auto&) { return true; }, [](const auto&) {});
  close(ends[1]);
}

TEST_F(Follow, TheLogIsThatOfTheLastStart) {
  EXPECT_THAT(refusal([&] { log_of(dir_.path(), std::nullopt); }), HasSubstr("has no logs"));
  std::ofstream(dir_ / "lock") << "";
  append("");
  EXPECT_EQ(log_of(dir_.path(), std::nullopt), log_);
  const std::string launcher = dir_ / "logs/launcher.log";
  std::ofstream(launcher) << "";
  const auto now = fs::last_write_time(dir_ / "lock");
  fs::last_write_time(launcher, now + std::chrono::seconds(1));
  EXPECT_EQ(log_of(dir_.path(), std::nullopt), launcher) << "in the background";
  fs::last_write_time(launcher, now - std::chrono::seconds(1));
  EXPECT_EQ(log_of(dir_.path(), std::nullopt), log_) << "an earlier start was in the background";
  EXPECT_EQ(log_of(dir_.path(), 0), log_);
  EXPECT_EQ(refusal([&] { log_of(dir_.path(), 3); }), "--rank 3: " + dir_.path() + " has logs of ranks 0");
}

}  // namespace
}  // namespace lockstep::launch
