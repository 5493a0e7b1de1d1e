#include "lockstep/datasets/packing/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/datasets/image_setup.h"
#include "lockstep/datasets/packed/verify.h"
#include "lockstep/datasets/packed_images.h"
#include "lockstep/datasets/packing/testing/pack_data.h"
#include "lockstep/datasets/whole_sample.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using testing::contents_of;
using testing::data_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::names_in;
using testing::TempDir;
using testing_support::refusal;

// Two classes of six images each.
class Pack : public ::testing::Test {
 protected:
  Pack() { testing::write_classes(dir_, "data/", {"cats", "dogs"}, 6); }
  PackOptions options(const std::string& out = "out") const { return {.data = dir_ / "data", .out = dir_ / out}; }
  const TempDir dir_{};
};

TEST_F(Pack, WritesTheSameBytesOnAnyNumberOfThreads) {
  for (const int workers : {1, 2, 7}) {
    PackOptions wanted = options(cat("out", workers));
    wanted.workers = workers;
    wanted.shards = 3;
    const auto result = pack(wanted);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->parts.at(0).samples, 12);
    EXPECT_EQ(contents_of(dir_ / "out1"), contents_of(wanted.out)) << workers;
  }
  EXPECT_THAT(names_in(dir_ / "out1"),
              ElementsAre("manifest.json", "shard-00000.lks", "shard-00001.lks", "shard-00002.lks"));
  for (const ShardFile& shard : read_manifest(dir_ / "out1").shards) EXPECT_EQ(shard.records, 4u);
  PackOptions other = options("other");
  other.seed = 2;
  pack(other);
  EXPECT_NE(read_manifest(other.out).fingerprint(), read_manifest(dir_ / "out1").fingerprint());
}

TEST_F(Pack, ShufflesUnlessItIsToldNotTo) {
  PackOptions ordered = options("ordered");
  ordered.shuffle = false;
  pack(ordered);
  pack(options());
  const auto in_order = packed_images(ordered.out), shuffled = packed_images(dir_ / "out");
  EXPECT_EQ(in_order->short_name_of(0), "cats/0.jpg");
  EXPECT_EQ(in_order->short_name_of(11), "dogs/5.jpg");
  EXPECT_EQ(in_order->first(), 0);
  EXPECT_EQ(shuffled->short_name_of(shuffled->first()), "cats/0.jpg");
  std::vector<std::string> names, as_they_were;
  for (int64_t i = 0; i < 12; ++i) names.push_back(shuffled->short_name_of(i));
  for (int64_t i = 0; i < 12; ++i) as_they_were.push_back(in_order->short_name_of(i));
  EXPECT_NE(names, as_they_were);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, as_they_were) << "each is there once";
}

TEST_F(Pack, KeepsBytesAndSaysWhatItWrote) {
  const auto result = pack(options());
  const auto packed = packed_images(dir_ / "out");
  std::vector<uint8_t> memory;
  const auto files = contents_of(dir_ / "data");
  for (int64_t i = 0; i < packed->size(); ++i) {
    const auto bytes = packed->read(i, memory).bytes;
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), files.at(packed->short_name_of(i)));
  }
  uint64_t all = 0;
  for (const auto& [name, content] : files) all += content.size();
  EXPECT_EQ(result->parts[0].stored_bytes, all);
  EXPECT_EQ(result->parts[0].manifest.packing, "as they are, shuffled by seed 1");
  EXPECT_TRUE(result->left_out.empty());
  EXPECT_TRUE(verify_packed(dir_ / "out", 2).problems.empty());
}

TEST_F(Pack, BeginsAnotherShardWhereOneIsFull) {
  const auto noise = testing::png({900, 700}, 3);
  ASSERT_GT(noise.size(), 600u << 10) << "so that two are more than a MiB";
  for (int i = 0; i < 3; ++i) testing::write_deep(dir_, cat("data/cats/noise", i, ".png"), noise);
  PackOptions wanted = options();
  wanted.shard_size = 1;
  pack(wanted);
  for (const ShardFile& shard : read_manifest(wanted.out).shards) EXPECT_LT(shard.bytes, 2u << 20);
  EXPECT_GE(read_manifest(wanted.out).shards.size(), 3u);
}

TEST_F(Pack, StopsAtTheFirstBadImageAndLeavesNothingBehind) {
  testing::write_deep(dir_, "data/cats/9.jpg", "<html>");
  for (const int workers : {1, 4}) {
    PackOptions wanted = options();
    wanted.workers = workers;
    EXPECT_THAT(data_error([&] { pack(wanted); }),
                AllOf(HasSubstr("cats/9.jpg: it is no image"), HasSubstr("--skip-bad N")));
    EXPECT_THAT(names_in(dir_.path()), ElementsAre("data"));
  }
}

TEST_F(Pack, LeavesBadImagesOutIfItMay) {
  testing::write_deep(dir_, "data/cats/8.jpg", "<html>");
  testing::write_deep(dir_, "data/eels/9.jpg", testing::jpeg().substr(0, 300));
  PackOptions wanted = options();
  wanted.skip_bad = 1;
  EXPECT_THAT(data_error([&] { pack(wanted); }), HasSubstr("--skip-bad allows no more"));
  wanted.skip_bad = 2;
  const auto result = pack(wanted);
  EXPECT_EQ(result->left_out.size(), 2u);
  EXPECT_THAT(result->left_out, ::testing::UnorderedElementsAre(HasSubstr("cats/8.jpg: "), HasSubstr("eels/9.jpg: ")));
  EXPECT_THAT(result->parts[0].emptied, ElementsAre("eels"));
  EXPECT_EQ(packed_images(wanted.out)->size(), 12);
}

TEST_F(Pack, EndsWhenItIsAskedToAndLeavesNothingBehind) {
  int asked = 0;
  const auto result = pack(options(), {.stops = [&] { return ++asked == 5; }});
  EXPECT_FALSE(result);
  EXPECT_THAT(names_in(dir_.path()), ElementsAre("data"));
}

TEST_F(Pack, TellsHowFarItIs) {
  PackProgress last;
  pack(options(), {.on_progress = [&](const PackProgress& at) {
         EXPECT_EQ(at.done, last.done + 1);
         last = at;
       }});
  EXPECT_EQ(last.done, 12);
  EXPECT_EQ(last.samples, 12);
  EXPECT_GT(last.bytes, 12u * 500);
}

TEST_F(Pack, RefusesPlacesThatItWouldSpoil) {
  std::filesystem::create_directory(dir_ / "full");
  dir_.write("full/mine.txt", "");
  EXPECT_THAT(refusal([&] { pack(options("full")); }), HasSubstr("there are files in it"));
  PackOptions over = options("full");
  over.overwrite = true;
  EXPECT_THAT(refusal([&] { pack(over); }), HasSubstr("full/mine.txt is no packed data"));
  EXPECT_THAT(names_in(dir_ / "full"), ElementsAre("mine.txt"));
  dir_.write("file", "");
  EXPECT_THAT(refusal([&] { pack(options("file")); }), HasSubstr("is no folder"));
  EXPECT_THAT(refusal([&] { pack(options("data/cats/packed")); }), HasSubstr("lies in the data itself"));
  EXPECT_THAT(names_in(dir_ / "data/cats"), ::testing::SizeIs(6));
}

// What it would clear may be its own source.
TEST_F(Pack, RefusesToRemoveWhatItPacks) {
  pack(options("d/train"));
  std::filesystem::copy(dir_ / "d/train", dir_ / "d/val");
  std::filesystem::copy(dir_ / "d/train", dir_ / "x.packing");
  std::filesystem::create_directory(dir_ / "linked");
  std::filesystem::create_directory_symlink(dir_ / "d/val", dir_ / "linked/train");
  const auto before = contents_of(dir_.path());
  const auto refused = [&](const std::string& data, const std::string& out) {
    return refusal([&] { pack({.data = dir_ / data, .out = dir_ / out, .overwrite = true}); });
  };
  EXPECT_THAT(refused("x.packing", "x"), AllOf(HasSubstr("lie in "), HasSubstr("x.packing, of which all files")));
  EXPECT_THAT(refused("d/train", "d"), HasSubstr("d/train, lie in "));
  EXPECT_THAT(refused("linked", "d/val"), HasSubstr("lies in the data itself"));
  EXPECT_THAT(refused("linked", "d"), HasSubstr("linked/train, lie in "));
  EXPECT_THAT(refused("d", "d"), HasSubstr("lies in the data itself"));
  EXPECT_THAT(refused("d", "d/train"), HasSubstr("lies in the data itself"));
  EXPECT_EQ(contents_of(dir_.path()), before);
}

TEST_F(Pack, KeepsWhatSomebodyPutsIntoTheDataThatItReplaces) {
  pack(options());
  PackOptions over = options();
  over.overwrite = true;
  const auto result = pack(over, {.on_progress = [&](const PackProgress& at) {
                             if (at.done == 3) dir_.write("out/mine.txt", "a note");
                           }});
  EXPECT_THAT(result->warnings, ElementsAre(HasSubstr("out.replaced/mine.txt was put there meanwhile")));
  EXPECT_EQ(contents_of(dir_ / "out.replaced").at("mine.txt"), "a note");
  EXPECT_TRUE(verify_packed(dir_ / "out.replaced", 2).problems.empty()) << "nothing of it is removed";
  EXPECT_TRUE(verify_packed(dir_ / "out", 2).problems.empty());
}

TEST_F(Pack, RefusesOptionsThatDoNotGoTogether) {
  PackOptions wanted = options();
  wanted.shards = 13;
  EXPECT_THAT(refusal([&] { pack(wanted); }), HasSubstr("--shards 13: there are 12 samples"));
  wanted = options();
  wanted.quality = 80;
  EXPECT_THAT(refusal([&] { pack(wanted); }), HasSubstr("--quality: all images are kept"));
  wanted.codec = PackCodec::kPng;
  EXPECT_THAT(refusal([&] { pack(wanted); }), HasSubstr("--codec png has none"));
  wanted = options();
  wanted.exif = Exif::kOff;
  EXPECT_THAT(refusal([&] { pack(wanted); }), HasSubstr("--exif: all images are kept"));
}

// One is resized, the other one kept; both have an orientation.
TEST_F(Pack, TurnsAllOfADataSetAlike) {
  for (const int side : {80, 24}) {
    const auto pixels = image::testing_support::picture({side, side});
    testing::write_deep(dir_, cat("pairs/imgs/", side, ".jpg"),
                        testing::text_of(image::encode_jpeg(pixels, {.orientation = 6})));
    testing::write_deep(dir_, cat("pairs/masks/", side, ".png"),
                        testing::text_of(image::encode_png(testing::bands({side, side}))));
  }
  std::map<Exif, std::set<int>> corners;  // the mask's value in the upper right corner
  for (const Exif exif : {Exif::kBoth, Exif::kImage, Exif::kOff}) {
    pack({.data = dir_ / "pairs", .out = dir_ / "out", .size = 32, .exif = exif, .overwrite = true});
    const auto packed = packed_images(dir_ / "out");
    WholeSample sample(*packed, turned_by({}));
    for (int64_t i = 0; i < packed->size(); ++i) {
      sample.open(i);
      sample.decode(image::Pipeline());
      const int right = sample.mask().width() - 1;
      corners[exif].insert(static_cast<int>(sample.mask_values().at(*sample.mask().at(right, 0))));
    }
  }
  EXPECT_THAT(corners[Exif::kBoth], ElementsAre(0)) << "turned with the image";
  EXPECT_THAT(corners[Exif::kImage], ElementsAre(7));
  EXPECT_THAT(corners[Exif::kOff], ElementsAre(7));
}

TEST_F(Pack, RefusesMasksOfTooManyValues) {
  testing::write_deep(dir_, "pairs/imgs/1.png", testing::png({64, 64}));
  testing::write_deep(dir_, "pairs/masks/1.png", testing::png({64, 64}, 2));
  EXPECT_THAT(data_error([&] { pack({.data = dir_ / "pairs", .out = dir_ / "out"}); }),
              AllOf(HasSubstr("masks/1.png"), HasSubstr("256 values")));
}

}  // namespace
}  // namespace lockstep::datasets
