#include "lockstep/datasets/pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/datasets/testing/picture_files.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using testing::data_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::write_deep;

// The pairs of a folder with these files.
Pairs pairs_with(const std::vector<std::string>& names) {
  const TempDir dir;
  for (const std::string& name : names) write_deep(dir, name, name);
  return find_pairs(dir.path());
}

TEST(Pairs, OfCarvana) {
  const Pairs found = pairs_with({"train/0cd_02.jpg", "train/0cd_01.jpg", "train_masks/0cd_01_mask.gif",
                                  "train_masks/0cd_02_mask.gif", "sample_submission.csv"});
  EXPECT_THAT(found.pairs, ElementsAre(Pair{"train/0cd_01.jpg", "train_masks/0cd_01_mask.gif"},
                                       Pair{"train/0cd_02.jpg", "train_masks/0cd_02_mask.gif"}));
  EXPECT_TRUE(found.without_mask.empty());
  EXPECT_EQ(found.listing.size(), 4u);
}

TEST(Pairs, OfPytorchUNet) {
  EXPECT_THAT(pairs_with({"imgs/1.jpg", "masks/1_mask.gif", "imgs/.keep"}).pairs,
              ElementsAre(Pair{"imgs/1.jpg", "masks/1_mask.gif"}));
  EXPECT_THAT(pairs_with({"imgs/1.png", "masks/1.png", "imgs/10.png", "masks/10.npy"}).pairs,
              ElementsAre(Pair{"imgs/1.png", "masks/1.png"}, Pair{"imgs/10.png", "masks/10.npy"}));
}

TEST(Pairs, LieInFoldersOfTheSameName) {
  EXPECT_THAT(pairs_with({"images/a/1.jpg", "images/b/1.jpg", "labels/a/1.png", "labels/b/1.png"}).pairs,
              ElementsAre(Pair{"images/a/1.jpg", "labels/a/1.png"}, Pair{"images/b/1.jpg", "labels/b/1.png"}));
}

TEST(Pairs, MayHaveDotsAndMaskInTheirNames) {
  EXPECT_THAT(pairs_with({"imgs/a.b.jpg", "masks/a.b.png", "imgs/c_mask.jpg", "masks/c_mask.png", "imgs/d_mask.jpg",
                          "masks/d_mask_mask.png"})
                  .pairs,
              ElementsAre(Pair{"imgs/a.b.jpg", "masks/a.b.png"}, Pair{"imgs/c_mask.jpg", "masks/c_mask.png"},
                          Pair{"imgs/d_mask.jpg", "masks/d_mask_mask.png"}));
}

TEST(Pairs, KnowWhatHasNoPartner) {
  const Pairs found = pairs_with({"imgs/1.jpg", "imgs/2.jpg", "masks/1.png", "masks/3_mask.png"});
  EXPECT_EQ(found.pairs.size(), 1u);
  EXPECT_THAT(found.without_mask, ElementsAre("imgs/2.jpg"));
  EXPECT_THAT(found.without_image, ElementsAre("masks/3_mask.png"));
}

TEST(Pairs, AreRefusedWhereTwoHaveOneName) {
  EXPECT_THAT(data_error([] {
                pairs_with({"imgs/1.jpg", "imgs/1.png", "masks/1.png"});
              }),
              AllOf(HasSubstr("imgs/1.png: imgs/1.jpg has the same name"), HasSubstr("its mask is not certain")));
  EXPECT_THAT(data_error([] {
                pairs_with({"imgs/1.jpg", "masks/1.png", "masks/1_mask.png"});
              }),
              HasSubstr("masks/1_mask.png: masks/1.png has the same name"));
}

TEST(Pairs, AreRefusedWithWhatWasLookedFor) {
  EXPECT_THAT(data_error([] {
                pairs_with({"pictures/1.jpg", "masks/1.png"});
              }),
              AllOf(HasSubstr("looked for the folders imgs"), HasSubstr("found 2 folders (masks, pictures)")));
  EXPECT_THAT(data_error([] { pairs_with({"imgs/1.jpg", "masks/2.png"}); }), HasSubstr("no image"));
}

}  // namespace
}  // namespace lockstep::datasets
