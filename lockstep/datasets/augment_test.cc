#include "lockstep/datasets/augment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::datasets {
namespace {

std::string training(std::optional<Augment> augment) {
  return photograph_setup({.images = {.augment = augment}}).train->text();
}

TEST(Augment, OfPhotographsIsTorchvisions) {
  EXPECT_EQ(training(Augment::kNone), "Resize 256, CenterCrop 224");
  EXPECT_EQ(training(Augment::kFlip), "Resize 256, CenterCrop 224, flip 0.5");
  EXPECT_EQ(training(Augment::kStandard), "RandomResizedCrop 224, flip 0.5");
  EXPECT_EQ(training(std::nullopt), training(Augment::kStandard));
  EXPECT_EQ(training(Augment::kStrong),
            training(Augment::kStandard) + ", RandAugment 2 of magnitude 9, RandomErasing 0.1");
  for (const Augment augment : {Augment::kNone, Augment::kStrong}) {
    EXPECT_EQ(photograph_setup({.images = {.augment = augment}}).evaluation->text(), "Resize 256, CenterCrop 224");
  }
}

TEST(Augment, OfSmallImagesCropsAfterPadding) {
  const ImageSetup same = small_image_setup({.size = 32}, {32, 32}, {});
  EXPECT_EQ(same.train->text(), "RandomCrop 32 (padding 4), flip 0.5");
  EXPECT_EQ(same.evaluation->text(), "as it is");
  const ImageSetup larger = small_image_setup({.images = {.augment = Augment::kNone}, .size = 64}, {32, 32}, {});
  EXPECT_EQ(larger.train->text(), "Resize to 64");
  EXPECT_EQ(larger.evaluation->text(), "Resize to 64");
}

TEST(Augment, OfMasksFlipsBothWaysAndKeepsHalfAnImage) {
  const auto training = [](Augment augment) {
    return pair_setup({.images = {.augment = augment}}, {96, 64}).train->text();
  };
  EXPECT_EQ(training(Augment::kNone), "Fit 96 x 64");
  EXPECT_EQ(training(Augment::kFlip), "Fit 96 x 64, flip 0.5");
  EXPECT_EQ(training(Augment::kStandard),
            "RandomResizedCrop 96 x 64 (0.5 to 1) (ratio 1.5 to 1.5), flip 0.5, flip upside down 0.5");
  EXPECT_EQ(training(Augment::kStrong), training(Augment::kStandard) + ", RandAugment 2 of magnitude 9");
  EXPECT_EQ(pair_setup({}, {96, 64}).evaluation->text(), "Fit 96 x 64");
}

TEST(Augment, PartsOfMasksAreLaidDownInAllWays) {
  const auto setup_of = [](Augment augment, int crop) {
    return pair_setup({.images = {.augment = augment}, .crop = crop}, {96, 64});
  };
  EXPECT_EQ(setup_of(Augment::kNone, 32).train->text(), "Fit 96 x 64, RandomCrop 32");
  EXPECT_EQ(setup_of(Augment::kFlip, 32).train->text(), "Fit 96 x 64, RandomCrop 32, flip 0.5");
  const ImageSetup setup = setup_of(Augment::kStandard, 32);
  EXPECT_EQ(setup.train->text(), "Fit 96 x 64, RandomCrop 32, flip 0.5, flip upside down 0.5, transpose 0.5");
  EXPECT_EQ(setup.evaluation->text(), "Fit 96 x 64");
  EXPECT_EQ(setup.size(true), (image::Size{32, 32}));
  EXPECT_EQ(setup.size(false), (image::Size{96, 64}));
  EXPECT_THAT(testing_support::refusal([&] { setup_of(Augment::kStandard, 80); }),
              ::testing::HasSubstr("--crop 80: images have 96 x 64 pixels, after --size or --scale; give at most 64"));
}

TEST(Augment, PassesTheOptionsOn) {
  const ImageSetup setup =
      photograph_setup({.images = {.augment = Augment::kFlip, .exif = Exif::kOff, .fast_decode = true},
                        .size = 64,
                        .channels_last = true,
                        .dtype = at::kBFloat16});
  EXPECT_FALSE(setup.decode.exif);
  const auto turn_of = [](Exif exif) { return pair_setup({.images = {.exif = exif}}, {96, 64}).decode.mask_turn; };
  EXPECT_EQ(turn_of(Exif::kOn), image::MaskTurn::kBySize);
  EXPECT_EQ(turn_of(Exif::kBoth), image::MaskTurn::kAsImage);
  EXPECT_EQ(turn_of(Exif::kImage), image::MaskTurn::kNone);
  EXPECT_TRUE(setup.decode.fast);
  EXPECT_EQ(setup.result, (image::Size{64, 64}));
  EXPECT_TRUE(setup.channels_last);
  EXPECT_EQ(setup.dtype, at::kBFloat16);
  EXPECT_EQ(text_of(setup, true), "flip: Resize 73, CenterCrop 64, flip 0.5");
  EXPECT_EQ(text_of(setup, false), "Resize 73, CenterCrop 64");
}

}  // namespace
}  // namespace lockstep::datasets
