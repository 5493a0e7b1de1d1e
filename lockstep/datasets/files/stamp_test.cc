#include "lockstep/datasets/files/stamp.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "lockstep/datasets/files/testing/files.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

constexpr int64_t kHour = int64_t{3600} * 1'000'000'000;

class Stamp : public ::testing::Test {
 protected:
  Stamp() {
    dir_.write("a.png", "aaaa");
    dir_.write("b.png", "bbbb");
  }
  std::string now() const { return stamp_of(dir_.path(), listing_, wall_clock_ns() + kHour); }

  // Writes a file and gives it the times that the former one had, as far as a program can.
  void replace(const std::string& name, const std::string& content) const {
    struct stat before {};
    ASSERT_EQ(stat((dir_ / name).c_str(), &before), 0);
    // The kernel's clock for files goes on by ticks of some milliseconds.
    struct stat after = before;
    while (after.st_ctim.tv_sec == before.st_ctim.tv_sec && after.st_ctim.tv_nsec == before.st_ctim.tv_nsec) {
      dir_.write(name, content);
      const timespec times[] = {before.st_atim, before.st_mtim};
      ASSERT_EQ(utimensat(AT_FDCWD, (dir_ / name).c_str(), times, 0), 0);
      ASSERT_EQ(stat((dir_ / name).c_str(), &after), 0);
    }
    ASSERT_EQ(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
  }

  const TempDir dir_;
  Listing listing_ = {{"a.png", 4}, {"b.png", 4}};
};

TEST_F(Stamp, IsTheSameWhileTheFilesAre) {
  const std::string before = now();
  EXPECT_EQ(before.size(), 16u);
  EXPECT_EQ(now(), before);
  listing_.pop_back();
  EXPECT_NE(now(), before) << "fewer files";
}

TEST_F(Stamp, ChangesWithAFileOfTheSameSizeAndTime) {
  const std::string before = now();
  replace("b.png", "BBBB");
  EXPECT_NE(now(), before);
}

TEST_F(Stamp, ChangesWithNamesAndSizes) {
  const std::string before = now();
  fs::rename(dir_ / "b.png", dir_ / "c.png");
  listing_[1].name = "c.png";
  const std::string renamed = now();
  EXPECT_NE(renamed, before);
  dir_.write("c.png", "longer");
  EXPECT_NE(now(), renamed);
}

TEST_F(Stamp, IsNoneOfFilesThatChangedJustNowOrAreGone) {
  EXPECT_EQ(stamp_of(dir_.path(), listing_, wall_clock_ns()), "");
  EXPECT_NE(now(), "");
  fs::remove(dir_ / "a.png");
  EXPECT_EQ(now(), "");
  EXPECT_EQ(stamp_of(dir_.path(), {}).size(), 16u);
}

}  // namespace
}  // namespace lockstep::datasets
