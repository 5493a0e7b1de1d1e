#include "lockstep/datasets/drawn/draw_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> drawn(const DrawOptions& options) {
  std::map<std::string, std::string> files;
  int64_t told = 0;
  const auto on_progress = [&](int64_t done, int64_t) { told = done; };
  EXPECT_EQ(draw_files(options, on_progress, [] { return false; }), told);
  for (const auto& entry : fs::recursive_directory_iterator(options.out)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[fs::relative(entry.path(), options.out).string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  EXPECT_EQ(std::ssize(files), options.kind == DrawnKind::kMasks ? 2 * told : told);
  return files;
}

TEST(DrawFiles, AreAFunctionOfTheirOptions) {
  const testing_support::TempDir dir;
  const auto files = drawn({.out = dir / "a", .samples = 20, .size = 32});
  EXPECT_EQ(files.size(), 22U);
  EXPECT_TRUE(files.contains("train/disc_stripes/00001.jpg"));
  EXPECT_TRUE(files.contains("train/ring_checks/00010.jpg"));
  EXPECT_TRUE(files.contains("val/disc_checks/00002.jpg"));
  EXPECT_EQ(drawn({.out = dir / "b", .samples = 20, .size = 32}), files);
  EXPECT_NE(drawn({.out = dir / "c", .samples = 20, .size = 32, .seed = 2}), files);
}

TEST(DrawFiles, MasksLieBesideTheirImages) {
  const testing_support::TempDir dir;
  const auto files = drawn({.kind = DrawnKind::kMasks, .out = dir / "a", .samples = 3, .size = 32});
  EXPECT_TRUE(files.contains("imgs/00003.jpg") && files.contains("masks/00003.png"));
}

TEST(DrawFiles, WhatIsThereIsLeftAlone) {
  const testing_support::TempDir dir;
  fs::create_directories(fs::path(dir / "full") / "in");
  fs::create_directories(dir / "begun.drawing");
  EXPECT_THROW(drawn({.out = dir / "full"}), ConfigError);
  EXPECT_THROW(drawn({.out = dir / "begun"}), ConfigError);
  EXPECT_TRUE(fs::exists(dir / "begun.drawing"));
  fs::create_directories(dir / "empty");
  drawn({.out = (dir / "empty") + "/", .samples = 1, .size = 16});
}

TEST(DrawFiles, AStoppedDrawingLeavesNothing) {
  const testing_support::TempDir dir;
  const DrawOptions options{.kind = DrawnKind::kMasks, .out = dir / "a", .samples = 5, .size = 16};
  int64_t done = 0;
  EXPECT_EQ(draw_files(
                options, [&](int64_t now, int64_t) { done = now; }, [&] { return done == 3; }),
            3);
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

}  // namespace
}  // namespace lockstep::datasets
