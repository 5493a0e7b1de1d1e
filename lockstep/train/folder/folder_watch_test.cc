#include "lockstep/train/folder/folder_watch.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

TEST(FolderWatch, SeesAFolderThatIsRemovedReplacedOrMoved) {
  const testing_support::TempDir dir;
  const std::string run = dir / "run";
  fs::create_directory(run);
  const FolderWatch watch(run);
  EXPECT_NO_THROW(watch.check());
  fs::rename(run, dir / "moved");
  EXPECT_THROW(watch.check(), IoError);
  fs::create_directory(run);
  EXPECT_THROW(watch.check(), IoError) << "another folder";
  fs::remove(run);
  fs::rename(dir / "moved", run);
  EXPECT_NO_THROW(watch.check()) << "put back";
  fs::remove(run);
  EXPECT_FALSE(watch.holds());
  fs::create_directory(run);
  EXPECT_FALSE(watch.holds()) << "no folder gets the inode of one that is open";
}

TEST(FolderWatch, NeedsAFolder) {
  const testing_support::TempDir dir;
  EXPECT_THROW(FolderWatch(dir / "none"), IoError);
}

}  // namespace
}  // namespace lockstep::train
