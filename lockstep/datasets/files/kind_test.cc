#include "lockstep/datasets/files/kind.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/datasets/files/testing/files.h"

namespace lockstep::datasets {
namespace {

using testing::TempDir;

// The kind of a folder with these files, or folders where a name ends in /.
Kind kind_with(const std::vector<std::string>& names) {
  const TempDir dir;
  for (const std::string& name : names) {
    std::filesystem::create_directories(std::filesystem::path(dir / name).parent_path());
    if (!name.ends_with('/')) dir.write(name, "");
  }
  return kind_of(dir.path());
}

TEST(Kind, IsToldByNames) {
  EXPECT_EQ(kind_with({"cats/1.jpg", "dogs/1.jpg"}), Kind::kClassFolders);
  EXPECT_EQ(kind_with({"train/cats/1.jpg", "val/cats/1.jpg"}), Kind::kTrainAndVal);
  EXPECT_EQ(kind_with({"train/1.jpg", "plane/1.jpg"}), Kind::kClassFolders) << "trains are a class there";
  EXPECT_EQ(kind_with({"imgs/1.png", "masks/1.png"}), Kind::kPairs);
  EXPECT_EQ(kind_with({"train/1.jpg", "train_masks/1_mask.gif"}), Kind::kPairs);
  EXPECT_EQ(kind_with({"images/1.png", "labels/1.png"}), Kind::kPairs);
  EXPECT_EQ(kind_with({"train/imgs/1.png", "train/masks/1.png", "val/imgs/1.png"}), Kind::kPairs);
  EXPECT_EQ(kind_with({"train/cats/1.jpg", "labels/names.txt"}), Kind::kTrainAndVal);
  EXPECT_EQ(kind_with({"train.rec", "train.idx"}), Kind::kRecordIo);
  EXPECT_EQ(kind_with({"manifest.json", "shard-0.lks"}), Kind::kPacked);
  EXPECT_EQ(kind_with({"imgs/1.png", "masks/1.png", "manifest.json"}), Kind::kPairs) << "somebody else's manifest";
  EXPECT_EQ(kind_with({"train/manifest.json", "val/manifest.json"}), Kind::kPacked);
  EXPECT_EQ(kind_with({"data_batch_1.bin", "test_batch.bin"}), Kind::kCifar10);
  EXPECT_EQ(kind_with({"train.bin", "test.bin"}), Kind::kCifar100);
  EXPECT_EQ(kind_with({"train-images-idx3-ubyte.gz"}), Kind::kMnist);
  EXPECT_EQ(kind_with({"1.jpg", "2.jpg"}), Kind::kUnknown);
  EXPECT_EQ(kind_with({}), Kind::kUnknown);
}

TEST(Kind, IsToldOfFiles) {
  const TempDir dir;
  EXPECT_EQ(kind_of(dir.write("any.rec", "")), Kind::kRecordIo);
  EXPECT_EQ(kind_of(dir.write("any.json", "")), Kind::kMnist);
  EXPECT_EQ(kind_of(dir.write("any.jpg", "")), Kind::kUnknown);
  EXPECT_EQ(kind_of(dir / "none"), Kind::kUnknown);
}

TEST(Kind, TellsFilesAndFoldersBehindLinks) {
  const TempDir dir;
  const std::string file = dir.write("file", "");
  EXPECT_TRUE(is_file(file));
  EXPECT_FALSE(is_folder(file));
  EXPECT_TRUE(is_folder(dir.path()));
  EXPECT_FALSE(is_file(dir.path()));
  std::filesystem::create_symlink(dir.path(), dir / "folder");
  std::filesystem::create_symlink("loop", dir / "loop");
  EXPECT_TRUE(is_folder(dir / "folder"));
  for (const char* name : {"none", "loop", "file/below"}) EXPECT_FALSE(is_file(dir / name) || is_folder(dir / name));
}

TEST(Kind, NamesTheFoldersOfPairs) {
  const TempDir dir;
  for (const char* name : {"train", "train_masks"}) std::filesystem::create_directory(dir / name);
  EXPECT_EQ(pair_folders(dir.path()).images, "train");
  EXPECT_EQ(pair_folders(dir.path()).masks, "train_masks");
  EXPECT_FALSE(pair_folders(dir / "train").found());
}

}  // namespace
}  // namespace lockstep::datasets
