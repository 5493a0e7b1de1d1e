#include "lockstep/datasets/found_there.h"

#include <gtest/gtest.h>

#include "lockstep/datasets/testing/picture_files.h"

namespace lockstep::datasets {
namespace {

using testing::TempDir;
using testing::write_deep;

TEST(FoundThere, CountsFoldersAndFilesAndNamesTheFirst) {
  const TempDir dir;
  EXPECT_EQ(found_there(dir.path()), "found no folders and no files");
  write_deep(dir, "b/1.jpg", "");
  dir.write("two\nlines", "");
  EXPECT_EQ(found_there(dir.path()), "found 1 folder (b) and 1 file (two\\nlines)");
  for (const char* name : {"e/1", "d/1", "c/1", "a/1"}) write_deep(dir, name, "");
  dir.write("1.txt", "");
  EXPECT_EQ(found_there(dir.path()), "found 5 folders (a, b, c, d, …) and 2 files (1.txt, two\\nlines)");
}

TEST(FoundThere, SaysWhatIsNoFolder) {
  const TempDir dir;
  EXPECT_EQ(found_there(dir / "no"), "nothing is there; check the path");
  EXPECT_EQ(found_there(dir.write("file", "")), "found a file");
  EXPECT_EQ(found_there("/dev/null").find("it can't be read: "), 0u);
}

}  // namespace
}  // namespace lockstep::datasets
