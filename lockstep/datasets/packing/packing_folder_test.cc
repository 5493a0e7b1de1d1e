#include "lockstep/datasets/packing/packing_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/datasets/packing/testing/pack_data.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::names_in;
using ::testing::StartsWith;
using testing::TempDir;
using ::testing::ThrowsMessage;
using testing_support::refusal;

const PackingFolderOptions kOver = {.overwrite = true};
// Of a file system that can't exchange names.
const PackingFolderOptions kOverBySteps = {.overwrite = true,
                                           .exchange = [](const std::string&, const std::string&) { return false; }};

void fill(const PackingFolder& folder, const std::string& content) {
  std::ofstream(folder.part("train") + "/manifest.json") << content;
}

std::string content_in(const std::string& folder) { return testing::contents_of(folder).at("train/manifest.json"); }

TEST(PackingFolder, HasItsNameOnceItIsWhole) {
  const TempDir dir;
  PackingFolder folder(dir / "out");
  fill(folder, "one");
  EXPECT_THAT(names_in(dir.path()), ElementsAre("out.packing"));
  folder.finish();
  EXPECT_THAT(names_in(dir.path()), ElementsAre("out"));
  EXPECT_EQ(content_in(dir / "out"), "one");
}

TEST(PackingFolder, GoesWhereItIsNotFinished) {
  const TempDir dir;
  {
    const PackingFolder folder(dir / "out");
    fill(folder, "one");
  }
  EXPECT_THAT(names_in(dir.path()), IsEmpty());
}

TEST(PackingFolder, TakesThePlaceOfAnEmptyFolderAndMakesThoseAbove) {
  const TempDir dir;
  fs::create_directory(dir / "out");
  PackingFolder folder(dir / "out/");
  fill(folder, "one");
  folder.finish();
  EXPECT_EQ(content_in(dir / "out"), "one");
  PackingFolder deep(dir / "a/b/out");
  fill(deep, "two");
  deep.finish();
  EXPECT_EQ(content_in(dir / "a/b/out"), "two");
}

TEST(PackingFolder, ReplacesPackedDataAtOnce) {
  const TempDir dir;
  std::string before;
  for (const char* content : {"one", "two", "three"}) {
    PackingFolder folder(dir / "out", before == "two" ? kOverBySteps : kOver);
    fill(folder, content);
    if (!before.empty()) EXPECT_EQ(content_in(dir / "out"), before) << "until the end";
    EXPECT_EQ(folder.finish(), "");
    before = content;
    EXPECT_EQ(content_in(dir / "out"), content);
    EXPECT_THAT(names_in(dir.path()), ElementsAre("out"));
  }
  EXPECT_THAT(refusal([&] { PackingFolder(dir / "out"); }), HasSubstr("there are files in it"));
}

TEST(PackingFolder, RemovesWhatAKilledPackingLeft) {
  const TempDir dir;
  fs::create_directories(dir / "out.packing/train");
  dir.write("out.packing/train/shard-00000.lks", "half of it");
  PackingFolder folder(dir / "out");
  fill(folder, "one");
  folder.finish();
  EXPECT_THAT(names_in(dir / "out/train"), ElementsAre("manifest.json"));
}

TEST(PackingFolder, LeavesAloneWhatNoPackingWrote) {
  const TempDir dir;
  fs::create_directory(dir / "out.packing");
  dir.write("out.packing/thesis.tex", "years of work");
  EXPECT_THAT(refusal([&] { PackingFolder(dir / "out", kOver); }), HasSubstr("thesis.tex is no packed data"));
  EXPECT_THAT(names_in(dir / "out.packing"), ElementsAre("thesis.tex"));
}

TEST(PackingFolder, IsOneProcessesAtATime) {
  const TempDir dir;
  const PackingFolder first(dir / "out");
  EXPECT_THAT(refusal([&] { PackingFolder(dir / "out"); }), HasSubstr("another process packs there"));
  EXPECT_THAT(names_in(dir.path()), ElementsAre("out.packing")) << "the first one's is still there";
}

// Packed data of the content "one".
void write_one(const TempDir& dir) {
  PackingFolder folder(dir / "out");
  fill(folder, "one");
  folder.finish();
}

// Between the exchange and its end the old data are OUT.packing, and another process must not clear that up.
TEST(PackingFolder, IsItsProcesssUntilTheOldDataAreRemoved) {
  const TempDir dir;
  write_one(dir);
  std::string refused;
  const auto exchange = [&](const std::string& one, const std::string& other) {
    const bool done = exchange_names(one, other);
    refused = refusal([&] { PackingFolder(dir / "out", kOver); });
    fs::rename(other, other + ".away");  // what holds the new data's lock
    refused += refusal([&] { PackingFolder(dir / "out"); });
    fs::rename(other + ".away", other);
    EXPECT_EQ(content_in(one), "one");
    return done;
  };
  PackingFolder folder(dir / "out", {.overwrite = true, .exchange = exchange});
  fill(folder, "two");
  EXPECT_EQ(folder.finish(), "");
  EXPECT_THAT(refused, AllOf(HasSubstr("another process packs there"), EndsWith("choose another folder")));
  EXPECT_EQ(std::count(refused.begin(), refused.end(), ';'), 2) << refused;
  EXPECT_THAT(names_in(dir.path()), ElementsAre("out"));
}

TEST(PackingFolder, KeepsReplacedDataThatSomebodyPutFilesInto) {
  for (const PackingFolderOptions& options : {kOver, kOverBySteps}) {
    const TempDir dir;
    write_one(dir);
    PackingFolder folder(dir / "out", options);
    fill(folder, "two");
    dir.write("out/train/thesis.tex", "years of work");
    EXPECT_THAT(folder.finish(),
                AllOf(StartsWith(dir / "out.replaced: "), HasSubstr("train/thesis.tex was put there")));
    EXPECT_EQ(content_in(dir / "out"), "two");
    EXPECT_EQ(content_in(dir / "out.replaced"), "one") << "nothing of it is removed";
    EXPECT_EQ(testing::contents_of(dir / "out.replaced").at("train/thesis.tex"), "years of work");
    EXPECT_THAT(refusal([&] { PackingFolder(dir / "out", kOver); }), HasSubstr("out.replaced is in the way"));
    EXPECT_THAT(names_in(dir.path()), ElementsAre("out", "out.replaced")) << "before any work";
  }
}

// The folder that would get the name vanishes after the exchange was refused.
TEST(PackingFolder, PutsTheOldDataBackWhereTheNewOnesCannotTakeTheirName) {
  const TempDir dir;
  write_one(dir);
  const auto lose = [](const std::string& one, const std::string&) {
    fs::rename(one, one + ".lost");
    return false;
  };
  {
    PackingFolder folder(dir / "out", {.overwrite = true, .exchange = lose});
    fill(folder, "two");
    EXPECT_THAT([&] { folder.finish(); }, ThrowsMessage<IoError>(HasSubstr("/out: can't be written: ")));
  }
  EXPECT_EQ(content_in(dir / "out"), "one");
  EXPECT_THAT(names_in(dir.path()), ElementsAre("out", "out.packing.lost"));
}

TEST(PackingFolder, FollowsALinkToItsFolder) {
  const TempDir dir;
  fs::create_directory(dir / "real");
  fs::create_directory_symlink("real", dir / "link");
  PackingFolder folder(dir / "link");
  fill(folder, "one");
  folder.finish();
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  EXPECT_EQ(content_in(dir / "real"), "one");
}

TEST(PackingFolder, IsNoMountPoint) {
  EXPECT_THAT(refusal([] { PackingFolder("/proc", kOver); }), HasSubstr("/proc: is a mount point"));
}

}  // namespace
}  // namespace lockstep::datasets
