#include "lockstep/datasets/packed/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "lockstep/datasets/files/testing/files.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;

// Two shards of three records of 1000 bytes each.
void write_folder(const std::string& folder) {
  std::filesystem::create_directories(folder);
  Manifest manifest{.source = "test", .packing = "as it is", .class_names = {"a"}};
  const std::vector<uint8_t> image(1000, 7);
  for (int s = 0; s < 2; ++s) {
    ShardWriter writer(folder, cat("shard-", s, ".lks"));
    for (uint64_t i = 0; i < 3; ++i) writer.add({.class_number = 0, .image = image}, i, cat(s, "-", i, ".jpg"));
    manifest.shards.push_back(writer.finish(manifest.class_names));
  }
  write_manifest(folder, manifest);
}

void change_byte(const std::string& path, int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1));
}

TEST(VerifyPacked, FindsNothingWhereAllIsAsItWasWritten) {
  const TempDir dir;
  write_folder(dir / "train");
  write_folder(dir / "val");
  for (const int threads : {1, 3}) {
    const Verified verified = verify_packed(dir.path(), threads);
    EXPECT_TRUE(verified.problems.empty());
    EXPECT_EQ(verified.shards, 4u);
    EXPECT_EQ(verified.bytes, 4 * std::filesystem::file_size(dir / "val/shard-0.lks"));
  }
}

TEST(VerifyPacked, NamesEveryDamagedRecord) {
  const TempDir dir;
  write_folder(dir.path());
  change_byte(dir / "shard-0.lks", 64 + 500);
  change_byte(dir / "shard-1.lks", 64 + 500);
  change_byte(dir / "shard-1.lks", 64 + 2 * 1024 + 500);
  EXPECT_THAT(verify_packed(dir.path(), 2).problems,
              ElementsAre(AllOf(HasSubstr("shard-0.lks: record 0 (0-0.jpg)"), HasSubstr("checksum")),
                          HasSubstr("shard-1.lks: record 0 (1-0.jpg)"), HasSubstr("shard-1.lks: record 2 (1-2.jpg)")));
}

TEST(VerifyPacked, NamesShardsThatAreCutMissingOrOthers) {
  const TempDir dir, other;
  write_folder(dir / "train");
  write_folder(dir / "val");
  std::filesystem::resize_file(dir / "train/shard-0.lks", 1000);
  std::filesystem::remove(dir / "train/shard-1.lks");
  ShardWriter writer(dir / "val", "shard-0.lks");  // sound by itself
  writer.add({.class_number = 0, .image = std::vector<uint8_t>(10)}, 0, "x");
  writer.finish({"a"});
  EXPECT_THAT(verify_packed(dir.path(), 1).problems,
              ElementsAre(HasSubstr("train/shard-0.lks: byte "), HasSubstr("train/shard-1.lks: can't be read"),
                          HasSubstr("val/shard-0.lks: is not the shard that manifest.json names")));
}

TEST(VerifyPacked, SeesAChangeBetweenRecords) {
  const TempDir dir;
  write_folder(dir.path());
  change_byte(dir / "shard-0.lks", 64 + 1024 - 64 + 60);  // zeros that fill a record up
  EXPECT_THAT(verify_packed(dir.path(), 1).problems, ::testing::SizeIs(1));
}

// The manifest has no checksum.
TEST(VerifyPacked, ComparesTheNumberOfRecords) {
  const TempDir dir;
  write_folder(dir.path());
  Manifest manifest = read_manifest(dir.path());
  manifest.shards[1].records = 4;
  write_manifest(dir.path(), manifest);
  EXPECT_THAT(verify_packed(dir.path(), 1).problems,
              ElementsAre(AllOf(HasSubstr("shard-1.lks: 3 records"), HasSubstr("manifest.json says 4"))));
}

// As a run, which opens the first of val/, validation/ …, whatever is in it.
TEST(VerifyPacked, NamesAPartThatIsOpenedAndHasNoManifest) {
  const TempDir dir;
  write_folder(dir / "train");
  write_folder(dir / "test");
  EXPECT_TRUE(verify_packed(dir.path(), 1).problems.empty());
  std::filesystem::create_directory(dir / "valid");
  EXPECT_THAT(verify_packed(dir.path(), 1).problems, ElementsAre(HasSubstr("valid/manifest.json: can't be read")));
  EXPECT_EQ(verify_packed(dir.path(), 1).shards, 4u) << "those of test/ are compared all the same";
  std::filesystem::remove_all(dir / "train");
  EXPECT_THAT(verify_packed(dir.path(), 1).problems,
              ElementsAre(HasSubstr("train/manifest.json"), HasSubstr("valid/manifest.json")));
}

TEST(VerifyPacked, NamesAManifestThatCannotBeRead) {
  const TempDir dir;
  dir.write("manifest.json", "{");
  EXPECT_THAT(verify_packed(dir.path(), 1).problems, ElementsAre(HasSubstr("manifest.json: no manifest")));
}

}  // namespace
}  // namespace lockstep::datasets
