#include "lockstep/datasets/stored_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/datasets/packed/testing/record_io_file.h"
#include "lockstep/datasets/testing/cifar_files.h"
#include "lockstep/datasets/testing/packed_files.h"
#include "lockstep/datasets/testing/picture_files.h"

namespace lockstep::datasets {
namespace {

using testing::data_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::write_deep;

std::vector<std::string> names_of(const StoredData& stored) {
  std::vector<std::string> names;
  for (const StoredPart& part : stored.parts) names.push_back(part.name);
  return names;
}

TEST(StoredData, HasThePartsOfEveryForm) {
  const TempDir one, two, pairs, packed, records, cifar10;
  testing::write_classes(one, "", {"cats"}, 2);
  EXPECT_THAT(names_of(open_stored(one.path())), ElementsAre(""));
  testing::write_classes(two, "train/", {"cats"}, 2);
  testing::write_classes(two, "valid/", {"cats"}, 1);
  EXPECT_THAT(names_of(open_stored(two.path())), ElementsAre("train", "valid"));
  for (const char* part : {"train/", "val/"}) {
    write_deep(pairs, cat(part, "imgs/1.png"), testing::png());
    write_deep(pairs, cat(part, "masks/1.png"), testing::png());
    std::filesystem::create_directory(packed / part);
    testing::write_packed(packed / part, {{testing::jpeg()}});
  }
  const StoredData with_masks = open_stored(pairs.path());
  EXPECT_THAT(names_of(with_masks), ElementsAre("train", "val"));
  EXPECT_EQ(with_masks.kind, Packed::kMasks);
  EXPECT_TRUE(with_masks.train().has_masks());
  EXPECT_THAT(names_of(open_stored(packed.path())), ElementsAre("train", "val"));
  EXPECT_THAT(names_of(open_stored(packed / "val")), ElementsAre(""));
  const std::string record = testing::record_io(testing::image_record(0, testing::jpeg()));
  records.write("train.rec", record);
  records.write("test.rec", record);
  EXPECT_THAT(names_of(open_stored(records.path())), ElementsAre("train", "test"));
  EXPECT_EQ(open_stored(records / "test.rec").test(), nullptr);
  testing::write_cifar10(cifar10);
  EXPECT_EQ(open_stored(cifar10.path()).kind, Packed::kCifar10);
}

TEST(StoredData, CallsSamplesByTheirNamesInTheDataSet) {
  const TempDir classes, records, cifar10;
  testing::write_classes(classes, "", {"cats"}, 1);
  EXPECT_EQ(open_stored(classes.path()).train().short_name_of(0), "cats/0.jpg");
  records.write("train.rec", testing::record_io(testing::image_record(0, testing::jpeg())));
  EXPECT_EQ(open_stored(records.path()).train().short_name_of(0), "train.rec: record 0");
  testing::write_cifar10(cifar10);
  EXPECT_EQ(open_stored(cifar10.path()).train().short_name_of(5), "data_batch_2.bin: image 1");
}

TEST(StoredData, TellsProblemsOneByOneWhereItIsAsked) {
  const TempDir dir;
  write_deep(dir, "imgs/1.png", testing::png());
  write_deep(dir, "imgs/2.png", testing::png());
  write_deep(dir, "imgs/3.png", testing::png());
  write_deep(dir, "masks/1_mask.png", testing::png());
  EXPECT_THAT(data_error([&] { open_stored(dir.path()); }), HasSubstr("2 of 3 images have no mask: imgs/2.png, "));
  std::vector<std::string> problems;
  const auto stored =
      open_stored(dir.path(), {.on_problem = [&](const std::string& line) { problems.push_back(line); }});
  EXPECT_EQ(stored.train().size(), 1);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("imgs/2.png: an image without a mask"), HasSubstr("imgs/3.png: ")));
}

TEST(StoredData, RefusesPartsThatDoNotBelongTogetherAndWhatIsNoData) {
  const TempDir dir, none;
  for (const char* part : {"train", "val"}) {
    std::filesystem::create_directory(dir / part);
    testing::write_packed(dir / part, {{testing::jpeg()}});
  }
  Manifest manifest = read_manifest(dir / "val");
  manifest.kind = Packed::kMasks;
  write_manifest(dir / "val", manifest);
  EXPECT_THAT(data_error([&] { open_stored(dir.path()); }), HasSubstr("one part has masks, and the other has none"));
  EXPECT_THAT(data_error([&] { open_stored(none.path()); }), HasSubstr("no images; looked for class folders"));
  none.write("train-images-idx3-ubyte", "");
  EXPECT_THAT(data_error([&] { open_stored(none.path()); }), HasSubstr("`lockstep train mnist` reads"));
}

}  // namespace
}  // namespace lockstep::datasets
