#include "lockstep/train/data_list.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

const std::vector<Listed> kFiles = {{"cats/1.jpg", 800}, {"cats/2.jpg", 5}, {"dogs/1.jpg", 0}};

TEST(DataList, ComesBack) {
  EXPECT_EQ(files_in(to_text(kFiles)), kFiles);
  const std::vector<Listed> odd = {{"a b\nc", 1}, {"back\\slash\\n", 18446744073709551615u}, {" blank ", 2}};
  EXPECT_EQ(files_in(to_text(odd)), odd);
  EXPECT_TRUE(files_in("").empty());
  EXPECT_EQ(files_in("rubbish\n12\n7 x\n"), (std::vector<Listed>{{"x", 7}}));
}

TEST(DataList, TheFirstDifferenceIsNamed) {
  EXPECT_EQ(difference(kFiles, kFiles), "");
  std::vector<Listed> now = kFiles;
  now.insert(now.begin() + 1, {"cats/10.jpg", 1});
  EXPECT_EQ(difference(kFiles, now), "cats/10.jpg was added");
  EXPECT_EQ(difference(now, kFiles), "cats/10.jpg is gone");
  now = kFiles;
  now[0].bytes = 812;
  EXPECT_EQ(difference(kFiles, now), "cats/1.jpg has 812 bytes, and had 800");
  now = kFiles;
  now.pop_back();
  EXPECT_EQ(difference(kFiles, now), "dogs/1.jpg is gone");
  EXPECT_EQ(difference(now, kFiles), "dogs/1.jpg was added");
}

}  // namespace
}  // namespace lockstep::train
