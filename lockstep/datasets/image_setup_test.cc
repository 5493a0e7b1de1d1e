#include "lockstep/datasets/image_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/image/crops.h"
#include "lockstep/image/flips.h"

namespace lockstep::datasets {
namespace {

using ::testing::EndsWith;
using Transforms = std::vector<std::shared_ptr<const image::Transform>>;

ImageSetup setup() {
  return {.train = std::make_shared<image::Pipeline>(Transforms{image::center_crop({8, 8}), image::flip_x()}),
          .evaluation = std::make_shared<image::Pipeline>(Transforms{image::center_crop({8, 8})}),
          .augment = "standard",
          .result = {8, 8}};
}

TEST(ImageSetup, IsNamedInTheHeader) {
  ImageSetup of = setup();
  EXPECT_EQ(text_of(of, true), "standard: CenterCrop 8, flip 0.5");
  EXPECT_EQ(text_of(of, false), "CenterCrop 8");
  of.augment = "";
  EXPECT_EQ(text_of(of, true), "CenterCrop 8, flip 0.5") << "transforms of one's own";
}

TEST(ImageSetup, TransformsAreAllThatValuesDependOn) {
  ImageSetup of = setup();
  of.normalize = {.mean = {0.5, 0.25, 0}, .std = {1, 2, 3}};
  EXPECT_EQ(transforms_of(of, true), "CenterCrop 8, flip 0.5; Float, mean 0.5 0.25 0, std 1 2 3");
  of.dtype = at::kByte;
  EXPECT_EQ(transforms_of(of, false), "CenterCrop 8; Byte") << "values as they are stored";
  of.decode = {.channels = 1, .exif = false, .fast = true};
  EXPECT_EQ(transforms_of(of, false), "CenterCrop 8; Byte, grey, exif off, fast decode");
  of.decode = turned_by(Exif::kBoth);
  EXPECT_THAT(transforms_of(of, false), EndsWith("Byte, exif both"));
  of.decode = turned_by(Exif::kImage);
  EXPECT_THAT(transforms_of(of, false), EndsWith("Byte, exif image"));
}

TEST(ImageSetup, SaysHowImagesAndMasksAreTurned) {
  EXPECT_TRUE(turned_by(std::nullopt).exif);
  EXPECT_TRUE(turned_by(Exif::kOn).mask_turn == image::MaskTurn::kBySize);
  EXPECT_FALSE(turned_by(Exif::kOff).exif);
  EXPECT_TRUE(turned_by(Exif::kBoth).exif && turned_by(Exif::kBoth).mask_turn == image::MaskTurn::kAsImage);
  EXPECT_TRUE(turned_by(Exif::kImage).exif && turned_by(Exif::kImage).mask_turn == image::MaskTurn::kNone);
}

TEST(ImageSetup, TypesAreThoseThatImagesComeIn) {
  EXPECT_TRUE(pixel_type(at::kByte) == image::Type::kU8 && pixel_type(at::kFloat) == image::Type::kF32);
  EXPECT_TRUE(pixel_type(at::kBFloat16) == image::Type::kBf16 && pixel_type(at::kHalf) == image::Type::kF16);
  EXPECT_EQ(testing_support::refusal([] { pixel_type(at::kDouble); }),
            "images as Double: they come as uint8, float32, bfloat16 or float16");
}

}  // namespace
}  // namespace lockstep::datasets
