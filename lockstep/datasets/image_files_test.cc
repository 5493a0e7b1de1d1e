#include "lockstep/datasets/image_files.h"

#include <gtest/gtest.h>

#include "lockstep/datasets/files/testing/files.h"

namespace lockstep::datasets {
namespace {

TEST(ImageFiles, AreToldByTheirEndings) {
  for (const char* name : {"a.jpg", "a.JPEG", "a/b.png", "a.gif", "a.npy"}) EXPECT_TRUE(is_image(name)) << name;
  for (const char* name : {"a.txt", "jpg", "a.jpg/b", "a.webp"}) EXPECT_FALSE(is_image(name)) << name;
}

TEST(ImageFiles, AreCountedByFormat) {
  EXPECT_EQ(count_of_images({{"a.jpg", 1}, {"b.jpeg", 1}}), "2 JPEGs");
  EXPECT_EQ(count_of_images({{"a.png", 1}}), "1 PNG");
  EXPECT_EQ(count_of_images({{"a.jpg", 1}, {"b.png", 1}, {"c.JPG", 1}}), "3 images (2 JPEG, 1 PNG)");
}

TEST(ImageFiles, AreListedOnOneRankForAll) {
  const testing::TempDir dir;
  dir.write("two\nlines.jpg", "12");
  int computed = 0;
  const auto once = [&](const std::function<std::string()>& compute) {
    ++computed;
    return compute();
  };
  EXPECT_EQ(list_files_once(dir.path(), once), list_files(dir.path()));
  EXPECT_EQ(computed, 1);
  const auto elsewhere = [&](const std::function<std::string()>&) { return text_of({{"other.jpg", 3}}); };
  EXPECT_EQ(list_files_once(dir.path(), elsewhere).front().name, "other.jpg") << "the one rank's list counts";
}

}  // namespace
}  // namespace lockstep::datasets
