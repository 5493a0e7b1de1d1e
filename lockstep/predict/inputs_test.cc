#include "lockstep/predict/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::predict {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

class Inputs : public ::testing::Test {
 protected:
  void write(const std::string& name) const {
    std::filesystem::create_directories(std::filesystem::path(dir_ / name).parent_path());
    std::ofstream(dir_ / name) << "x";
  }
  testing_support::TempDir dir_;
};

TEST_F(Inputs, AreAFileOrTheImagesOfAFolder) {
  for (const char* name : {"b/2.png", "a.JPG", "notes.txt", "b/1.gif"}) write(name);
  EXPECT_EQ(input_files(dir_ / "notes.txt"), Words{dir_ / "notes.txt"}) << "reading it tells what it is";
  EXPECT_THAT(input_files(dir_.path()), ElementsAre(dir_ / "a.JPG", dir_ / "b/1.gif", dir_ / "b/2.png"));
  EXPECT_THAT(input_files(dir_.path(), dir_ / "b"), ElementsAre(dir_ / "a.JPG")) << "what was made of them before";
  EXPECT_EQ(input_files(dir_ / "b", dir_.path()).size(), 2U) << "a folder above the images";
  std::filesystem::create_directory(dir_ / "empty");
  EXPECT_THROW(input_files(dir_ / "empty"), DataError);
}

TEST_F(Inputs, GiveNamesToWhatIsMadeOfThem) {
  for (const char* name : {"b/2.png", "a.JPG"}) write(name);
  EXPECT_THAT(output_names(dir_.path(), input_files(dir_.path())), ElementsAre("a", "b_2"));
  EXPECT_THAT(output_names(dir_ / "b/2.png", {dir_ / "b/2.png"}), ElementsAre("2"));
  EXPECT_THAT(output_names("2.v1.png", {"2.v1.png"}), ElementsAre("2.v1"));
  write("b_2.jpg");
  EXPECT_THROW(output_names(dir_.path(), input_files(dir_.path())), DataError);
}

}  // namespace
}  // namespace lockstep::predict
