#include "lockstep/recipes/options/micrographs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/base/text.h"

namespace lockstep::recipes {
namespace {

constexpr char kGrey = 0, kColours = 2;

// The first bytes of a PNG: no more is looked at.
std::string png(int side, char colour_type) {
  const std::string number = {0, 0, static_cast<char>(side >> 8), static_cast<char>(side & 0xff)};
  return std::string("\x89PNG\r\n\x1a\n", 8) + std::string("\0\0\0\rIHDR", 8) + number + number + '\x08' + colour_type;
}

class Micrographs : public ::testing::Test {
 protected:
  Micrographs() {
    for (const char* folder : {"imgs", "masks"}) std::filesystem::create_directory(dir_ / folder);
    for (int i = 0; i < 6; ++i) write(cat(i, ".png"), png(512, kGrey));
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(dir_ / ("imgs/" + name), std::ios::binary) << content;
  }
  bool are() const { return are_micrographs(dir_.path(), 448); }

  const testing_support::TempDir dir_;
};

TEST_F(Micrographs, AreAFewLargeGreyImages) {
  EXPECT_TRUE(are());
  for (const char* other : {".hidden.png", "Thumbs.db", "README"}) write(other, "");
  EXPECT_TRUE(are());
  std::filesystem::rename(dir_ / "imgs", dir_ / "images");
  std::filesystem::rename(dir_ / "masks", dir_ / "labels");
  EXPECT_TRUE(are());
}

TEST_F(Micrographs, AreNotColoured) {
  write("9.png", png(512, kColours));
  EXPECT_FALSE(are());
  std::filesystem::remove(dir_ / "imgs/9.png");
  write("9.JPG", "");
  EXPECT_FALSE(are());
}

TEST_F(Micrographs, AreSixAtLeast) {
  std::filesystem::remove(dir_ / "imgs/5.png");
  EXPECT_FALSE(are());
}

TEST_F(Micrographs, AreNotSmall) {
  write("9.png", png(256, kGrey));
  EXPECT_FALSE(are());
  write("9.png", png(2048, kGrey));
  EXPECT_FALSE(are()) << "nor very large";
}

TEST_F(Micrographs, AreNotMany) {
  for (int i = 6; i < 65; ++i) write(cat(i, ".png"), png(512, kGrey));
  EXPECT_FALSE(are());
}

TEST_F(Micrographs, AreNothingThatCannotBeRead) {
  write("9.png", "no picture");
  EXPECT_FALSE(are());
  EXPECT_FALSE(are_micrographs(dir_ / "imgs", 448)) << "no masks";
  EXPECT_FALSE(are_micrographs("/nowhere", 448));
}

}  // namespace
}  // namespace lockstep::recipes
