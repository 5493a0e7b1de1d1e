#include "lockstep/predict/class_output.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::predict {
namespace {

using ::testing::HasSubstr;
using train::TableFormat;

at::Tensor scores() { return at::tensor({0.0, 2.0}); }

TEST(ClassOutput, PrintsALineAtATime) {
  std::vector<std::string> printed;
  ClassOutput output({.format = TableFormat::kCsv, .print = [&](const std::string& text) { printed.push_back(text); }});
  output.add("a", scores());
  EXPECT_EQ(printed.size(), 2U) << "the columns, and an image";
  output.add("b", scores());
  EXPECT_EQ(printed.back(), "b,1,0.8808,0,0.1192\n");
}

TEST(ClassOutput, WritesAFile) {
  const testing_support::TempDir dir;
  ClassOutput output({.top = 1, .class_names = {"cat", "dog"}, .file = dir / "t"});
  EXPECT_FALSE(std::filesystem::exists(dir / "t"));
  output.add("a", scores());
  std::ifstream file(dir / "t");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "a: dog 0.8808\n");
  ClassOutput nowhere({.file = dir / "no/t"});
  EXPECT_THROW(nowhere.add("a", scores()), Error);
}

TEST(ClassOutput, OverwritesNothingThatIsRead) {
  const testing_support::TempDir dir;
  std::ofstream(dir / "a.png") << "x";
  std::filesystem::create_symlink("a.png", dir / "link");
  EXPECT_NO_THROW(refuse_overwriting("", {dir / "a.png"}));
  EXPECT_NO_THROW(refuse_overwriting(dir / "new", {dir / "a.png"}));
  EXPECT_THAT(::lockstep::testing_support::refusal([&] { refuse_overwriting(dir / "link", {dir / "a.png"}); }),
              HasSubstr("which is read"));
}

}  // namespace
}  // namespace lockstep::predict
