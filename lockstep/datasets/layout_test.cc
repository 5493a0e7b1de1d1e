#include "lockstep/datasets/layout.h"

#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <span>

#include "lockstep/base/error.h"
#include "lockstep/datasets/open_images.h"
#include "lockstep/datasets/open_pairs.h"
#include "lockstep/datasets/testing/packed_files.h"
#include "lockstep/datasets/testing/picture_files.h"

namespace lockstep::datasets {
namespace {

using testing::TempDir;
using testing::write_deep;

// The layout of a folder with these files.
Layout layout_of(const std::vector<std::string>& names) {
  const TempDir dir;
  for (const std::string& name : names) {
    write_deep(dir, name, "");
    if (name.ends_with("manifest.json")) write_manifest(std::filesystem::path(dir / name).parent_path(), {});
  }
  return find_layout(dir.path());
}

TEST(Layout, FindsThePartToTestOn) {
  EXPECT_EQ(layout_of({"cats/1.jpg"}), (Layout{Kind::kClassFolders, true, ""}));
  EXPECT_EQ(layout_of({"train/cats/1.jpg"}), (Layout{Kind::kTrainAndVal, false, ""}));
  EXPECT_EQ(layout_of({"train/cats/1.jpg", "test/cats/1.jpg", "valid/cats/1.jpg"}),
            (Layout{Kind::kTrainAndVal, false, "valid"}));
  EXPECT_EQ(layout_of({"train/cats/1.jpg", "test/1.jpg"}), (Layout{Kind::kTrainAndVal, false, ""}))
      << "ImageNet's test/ has no classes";
  EXPECT_EQ(layout_of({"train/cats/1.jpg", "val/1.jpg", "test/cats/1.jpg"}), (Layout{Kind::kTrainAndVal, false, "val"}))
      << "ImageNet's val/ as it is unpacked: it is refused rather than passed over";
  EXPECT_EQ(layout_of({"manifest.json"}), (Layout{Kind::kPacked, true, ""}));
  EXPECT_EQ(layout_of({"train/manifest.json", "val/manifest.json"}), (Layout{Kind::kPacked, false, "val"}));
  EXPECT_EQ(layout_of({"train.rec", "test.rec"}), (Layout{Kind::kRecordIo, false, "test.rec"}));
  EXPECT_EQ(layout_of({"imgs/1.png", "masks/1.png", "val/imgs/1.png", "val/masks/1.png"}),
            (Layout{Kind::kPairs, true, ""}));
  EXPECT_EQ(
      layout_of({"train/imgs/1.png", "train/masks/1.png", "val/1.png", "validation/imgs/1", "validation/masks/1"}),
      (Layout{Kind::kPairs, false, "validation"}));
  EXPECT_EQ(layout_of({"1.txt"}), Layout());
  const TempDir dir;
  EXPECT_EQ(find_layout(dir.write("a.rec", "")), (Layout{Kind::kRecordIo, true, ""}));
}

// One rank's words, which another takes for its own.
class Ranks {
 public:
  data::OnOneRank first() {
    return [this](const auto& compute) { return texts_.emplace_back(compute()); };
  }
  data::OnOneRank second() {
    return [this](const auto&) {
      if (texts_.empty()) throw BugError("it asks more than the first rank: the two wait for each other for ever");
      std::string text = texts_.front();
      texts_.pop_front();
      return text;
    };
  }
  bool all_taken() const { return texts_.empty(); }

 private:
  std::deque<std::string> texts_;
};

// A node's own disk may lack a part, or have one more.
TEST(Layout, RanksOnDisksThatDifferMakeTheSameCollectives) {
  const TempDir whole, partial;
  for (const TempDir* dir : {&whole, &partial}) testing::write_classes(*dir, "train/", {"cats", "dogs"}, 2);
  testing::write_classes(whole, "val/", {"cats", "dogs"}, 1);
  for (const auto& [first, second] : {std::pair(&whole, &partial), std::pair(&partial, &whole)}) {
    Ranks ranks;
    const auto one = open_images({.path = first->path(), .on_one_rank = ranks.first()});
    const auto other = open_images({.path = second->path(), .on_one_rank = ranks.second()});
    EXPECT_TRUE(ranks.all_taken());
    EXPECT_EQ(one.test == nullptr, other.test == nullptr);
    EXPECT_EQ(one.train->fingerprint(), other.train->fingerprint());
  }
}

TEST(Layout, RanksWithOtherFoldersOfMasksDoSoToo) {
  const TempDir carvana, other;
  for (const char* part : {"train/", "val/"}) {
    write_deep(carvana, cat(part, "imgs/1.jpg"), testing::jpeg({32, 32}));
    write_deep(carvana, cat(part, "masks/1.png"), testing::png({32, 32}, 2, 1));
  }
  write_deep(other, "images/1.jpg", testing::jpeg({32, 32}));
  write_deep(other, "labels/1.png", testing::png({32, 32}, 2, 1));
  for (const auto& [first, second] : {std::pair(&carvana, &other), std::pair(&other, &carvana)}) {
    Ranks ranks;
    const auto one = open_pairs({.path = first->path(), .on_one_rank = ranks.first()});
    const auto same = open_pairs({.path = second->path(), .on_one_rank = ranks.second()});
    EXPECT_TRUE(ranks.all_taken());
    EXPECT_EQ(one.train->fingerprint(), same.train->fingerprint());
  }
}

// An image with a mask, packed by who wrote the masks' values down, or by who did not.
void write_packed_pair(const TempDir& dir, const std::vector<uint32_t>& values) {
  const std::string image = testing::jpeg({32, 32}), mask = testing::png({32, 32}, 2, 1);
  const auto bytes = [](const std::string& text) {
    return std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  };
  ShardWriter writer(dir.path(), "shard-0.lks");
  writer.add({.class_number = -1,
              .width = 32,
              .height = 32,
              .codec = Codec::kJpeg,
              .image = bytes(image),
              .mask = bytes(mask)},
             0, "1.jpg");
  write_manifest(dir.path(), {.kind = Packed::kMasks,
                              .source = "test",
                              .packing = "as it is",
                              .class_names = {},
                              .mask_values = values,
                              .shards = {writer.finish({})}});
}

TEST(Layout, RanksWithOtherPackedDataDoSoToo) {
  const TempDir known, unknown, classes;
  write_packed_pair(known, {0, 255});
  write_packed_pair(unknown, {});
  testing::write_packed(classes.path(), {{testing::jpeg({32, 32})}});
  EXPECT_EQ(find_layout(known.path()).packed, Packed::kMasks);
  for (const auto& [first, second] : {std::pair(&known, &unknown), {&unknown, &known}, {&known, &classes}}) {
    Ranks ranks;
    const auto one = open_pairs({.path = first->path(), .on_one_rank = ranks.first()});
    const auto same = open_pairs({.path = second->path(), .on_one_rank = ranks.second()});
    EXPECT_TRUE(ranks.all_taken());
    EXPECT_EQ(one.train->fingerprint() == same.train->fingerprint(), second != &classes);
  }
}

}  // namespace
}  // namespace lockstep::datasets
