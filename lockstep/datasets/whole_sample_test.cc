#include "lockstep/datasets/whole_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/datasets/class_folders.h"
#include "lockstep/datasets/pairs.h"
#include "lockstep/datasets/testing/picture_files.h"

namespace lockstep::datasets {
namespace {

using testing::data_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::write_deep;

const image::Pipeline kWhole;

TEST(WholeSample, HasAsManyChannelsAsItsImage) {
  const TempDir dir;
  const std::string grey = testing::png({20, 10}, 1, 1), coloured = testing::png({30, 10});
  write_deep(dir, "cats/1.png", grey);
  write_deep(dir, "cats/2.png", coloured);
  const auto source = class_folders(dir.path());
  WholeSample sample(*source, {});
  sample.open(0);
  EXPECT_EQ(sample.bytes(), grey.size());
  sample.decode(kWhole);
  EXPECT_EQ(sample.image().channels(), 1);
  EXPECT_EQ(sample.image().size(), (image::Size{20, 10}));
  EXPECT_TRUE(sample.mask_values().empty());
  sample.open(1);
  sample.decode(kWhole);
  EXPECT_EQ(sample.image().channels(), 3);
  EXPECT_EQ(sample.info().upright(), (image::Size{30, 10}));
  EXPECT_THROW(sample.open(2), BugError);
}

TEST(WholeSample, HasTheNumbersOfItsMasksValues) {
  const TempDir dir;
  image::Pixels mask;
  mask.reshape({4, 1}, 1);
  for (int x = 0; x < 4; ++x) *mask.at(x, 0) = static_cast<uint8_t>(x == 0 ? 0 : x == 3 ? 255 : 9);
  write_deep(dir, "imgs/1.png", testing::png({4, 1}));
  write_deep(dir, "masks/1.png", testing::text_of(image::encode_png(mask)));
  write_deep(dir, "imgs/2.png", testing::png({40, 30}));
  write_deep(dir, "masks/2.png", testing::png({40, 30}));
  const auto source = pair_files(find_pairs(dir.path()));
  WholeSample sample(*source, {});
  sample.open(0);
  sample.decode(kWhole);
  EXPECT_THAT(sample.mask_values(), ElementsAre(0, 9, 255));
  EXPECT_THAT((std::vector<int>{*sample.mask().at(0, 0), *sample.mask().at(1, 0), *sample.mask().at(3, 0)}),
              ElementsAre(0, 1, 2));
  sample.open(1);
  EXPECT_THAT(data_error([&] { sample.decode(kWhole); }), HasSubstr("masks/2.png: with this mask there are more than"));
}

}  // namespace
}  // namespace lockstep::datasets
