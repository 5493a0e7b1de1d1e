#include "lockstep/datasets/packing/own_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "lockstep/datasets/packing/testing/pack_data.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::names_in;
using testing::TempDir;
using testing::write_deep;

void write_own(const TempDir& dir) {
  write_deep(dir, "out/train/manifest.json", "one");
  write_deep(dir, "out/train/shard-00000.lks", "one");
  write_deep(dir, "out/val/manifest.json", "two");
}

TEST(OwnFiles, AreRemovedWhereThereIsNothingElse) {
  const TempDir dir;
  write_own(dir);
  EXPECT_EQ(strange_file_in(dir / "out"), "");
  EXPECT_EQ(remove_own_files_in(dir / "out"), 0);
  EXPECT_TRUE(fs::is_empty(dir / "out"));
  write_own(dir);
  EXPECT_EQ(remove_own_folder(dir / "out"), 0);
  EXPECT_FALSE(fs::exists(dir / "out"));
}

TEST(OwnFiles, WhatOthersPutBesideThemStays) {
  const TempDir dir;
  write_own(dir);
  const std::string thesis = write_deep(dir, "out/train/thesis.tex", "years of work");
  EXPECT_EQ(strange_file_in(dir / "out"), thesis);
  EXPECT_EQ(remove_own_folder(dir / "out"), ENOTEMPTY);
  EXPECT_THAT(testing::contents_of(dir / "out"), ElementsAre(std::pair("train/thesis.tex", "years of work")));
}

// A link's name says nothing of what it leads to.
TEST(OwnFiles, LinksToFoldersAreNoneOfThem) {
  for (const char* name : {"train", "a.lks"}) {
    const TempDir dir;
    write_deep(dir, "elsewhere/manifest.json", "two");
    fs::create_directory(dir / "out");
    const std::string link = dir / cat("out/", name);
    fs::create_directory_symlink(dir / "elsewhere", link);
    EXPECT_EQ(strange_file_in(dir / "out"), link);
    EXPECT_EQ(remove_own_folder(dir / "out"), ENOTEMPTY);
    EXPECT_THAT(names_in(dir / "out"), ElementsAre(name));
    EXPECT_THAT(names_in(dir / "elsewhere"), ElementsAre("manifest.json"));
  }
}

TEST(OwnFiles, AFolderThatCannotBeReadIsStrange) {
  const TempDir dir;
  EXPECT_EQ(strange_file_in(dir / "gone"), dir / "gone");
  EXPECT_EQ(remove_own_folder(dir / "gone"), ENOENT);
}

}  // namespace
}  // namespace lockstep::datasets
