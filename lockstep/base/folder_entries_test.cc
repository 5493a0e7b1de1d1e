#include "lockstep/base/folder_entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(FolderEntries, AreFilesAndFolders) {
  const testing_support::TempDir dir;
  EXPECT_THAT(entries_of(dir.path()), IsEmpty());
  std::ofstream(dir / "file") << "x";
  std::filesystem::create_directory(dir / "folder");
  std::error_code error;
  EXPECT_THAT(entries_of(dir.path(), error), UnorderedElementsAre(dir / "file", dir / "folder"));
  EXPECT_FALSE(error);
}

TEST(FolderEntries, OfWhatIsNoFolderAreNone) {
  const testing_support::TempDir dir;
  EXPECT_THAT(entries_of(dir / "none"), IsEmpty());
  std::error_code error;
  EXPECT_THAT(entries_of("/proc/self/stat", error), IsEmpty());
  EXPECT_EQ(error, std::errc::not_a_directory);
}

}  // namespace
}  // namespace lockstep
