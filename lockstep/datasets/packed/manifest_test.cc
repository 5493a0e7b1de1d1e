#include "lockstep/datasets/packed/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/shown.h"
#include "lockstep/datasets/files/testing/files.h"

namespace lockstep::datasets {
namespace {

using testing::data_error;
using ::testing::HasSubstr;
using testing::TempDir;

Manifest example() {
  return {.source = "files 3 xxh3 0",
          .packing = "as it is",
          .class_names = {"cats", "d\"ogs"},
          .shards = {{"shard-0.lks", 2, 400, 0xfedcba9876543210}, {"shard-1.lks", 1, 300, 7}}};
}

TEST(Manifest, GivesBackWhatWasWritten) {
  const TempDir dir;
  write_manifest(dir.path(), example());
  const Manifest read = read_manifest(dir.path());
  EXPECT_EQ(read.source, example().source);
  EXPECT_EQ(read.packing, example().packing);
  EXPECT_EQ(read.class_names, example().class_names);
  EXPECT_EQ(read.shards, example().shards);
  EXPECT_EQ(read.records(), 3u);
  EXPECT_EQ(read.fingerprint(), example().fingerprint());
}

TEST(Manifest, SaysWhatIsPacked) {
  const TempDir dir;
  std::filesystem::create_directory(dir / "train");
  Manifest masks = example();
  masks.kind = Packed::kMasks;
  masks.mask_values = {0, 7, 1u << 31};
  write_manifest(dir / "train", masks);
  EXPECT_EQ(read_manifest(dir / "train").mask_values, masks.mask_values);
  EXPECT_EQ(packed_kind(dir.path()), Packed::kMasks) << "of the part";
  EXPECT_EQ(packed_kind(dir / "train"), Packed::kMasks);
  Manifest cifar = example();
  cifar.kind = Packed::kCifar100;
  write_manifest(dir.path(), cifar);
  EXPECT_EQ(packed_kind(dir.path()), Packed::kCifar100);
  dir.write("manifest.json", R"({"format":"lockstep packed","version":1,"kind":"songs"})");
  EXPECT_THAT(data_error([&] { packed_kind(dir.path()); }), HasSubstr("it holds 'songs'"));
}

TEST(Manifest, HasAFingerprintOfItsShards) {
  Manifest other = example();
  other.shards[1].hash = 8;
  EXPECT_NE(other.fingerprint(), example().fingerprint());
  EXPECT_THAT(other.fingerprint(), HasSubstr("packed 3 xxh3 "));
}

TEST(Manifest, MayHaveNamesThatAreNoText) {
  const TempDir dir;
  Manifest odd = example();
  odd.class_names = {"\xff\xfe"};
  write_manifest(dir.path(), odd);
  EXPECT_EQ(read_manifest(dir.path()).class_names.size(), 1u);
}

// What a foreign file holds is shown on a line, and only its beginning.
TEST(Manifest, ShowsLittleOfWhatItRefuses) {
  const TempDir dir;
  for (const std::string& text :
       {"{\"version\":\x7f\xc2\x9b" + std::string(10000, 'x'), "[\"" + std::string(10000, 'x') + "\n",
        R"({"format":"lockstep packed","version":")" + std::string(10000, 'x') + "\"}",
        R"({"format":"lockstep packed","version":1,"source":"","packing":"","classes":[],"shards":[{"file":".)" +
            std::string(10000, 'x') + R"(","records":1,"bytes":2,"xxh3":"1f"}]})"}) {
    dir.write("manifest.json", text);
    const std::string line = data_error([&] { read_manifest(dir.path()); });
    EXPECT_EQ(shown(line), line);
    EXPECT_LT(line.size(), 500u) << line;
  }
}

TEST(Manifest, RefusesWhatIsNone) {
  const TempDir dir;
  const auto refusal = [&](const std::string& text) {
    dir.write("manifest.json", text);
    return data_error([&] { read_manifest(dir.path()); });
  };
  const std::string begin =
      R"({"format":"lockstep packed","version":1,"kind":"images","source":"","packing":"","classes":[],)";
  const auto shard = [&](const std::string& file) {
    return begin + R"("shards":[{"file":")" + file + R"(","records":1,"bytes":2,"xxh3":"1f"}]})";
  };
  dir.write("manifest.json", shard("a.lks"));
  EXPECT_EQ(read_manifest(dir.path()).shards.front().hash, 0x1fu);
  for (const char* file : {"../a.lks", "/etc/passwd", "", ".."}) EXPECT_THAT(refusal(shard(file)), HasSubstr("named"));
  EXPECT_THAT(refusal("{"), HasSubstr("manifest.json: no manifest"));
  EXPECT_THAT(refusal(""), HasSubstr("no manifest"));
  EXPECT_THAT(refusal("[]"), HasSubstr("no manifest"));
  EXPECT_THAT(refusal(R"({"format":"other"})"), HasSubstr("its format is not"));
  EXPECT_THAT(refusal(R"({"format":"lockstep packed","version":2})"), HasSubstr("version 2, and this program"));
  EXPECT_THAT(refusal(begin + R"("shards":[{"file":"a","records":1,"bytes":2,"xxh3":"1z"}]})"), HasSubstr("xxh3"));
  for (const char* number : {"-1", "1.5", "1e30", "99999999999999999999", "\"1\"", "null"}) {
    const std::string counted = R"("shards":[{"file":"a","bytes":2,"xxh3":"1f","records":)";
    EXPECT_THAT(refusal(begin + counted + number + "}]}"), HasSubstr("a number of records")) << number;
  }
  EXPECT_THAT(refusal(std::string(100000, '[')), HasSubstr("no manifest"));
}

}  // namespace
}  // namespace lockstep::datasets
