#include "lockstep/datasets/pair_dataset.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/data/read_batch.h"
#include "lockstep/data/sample_rows.h"
#include "lockstep/datasets/pairs.h"
#include "lockstep/datasets/testing/picture_files.h"
#include "lockstep/datasets/testing/slow_to_open.h"
#include "lockstep/image/affine.h"
#include "lockstep/image/crops.h"
#include "lockstep/image/fit.h"
#include "lockstep/image/flips.h"
#include "lockstep/image/mask_value.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using testing::data_error;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::write_deep;
using Transforms = std::vector<std::shared_ptr<const image::Transform>>;

ImageSetup setup(const Transforms& transforms, image::Size size) {
  return {.train = std::make_shared<image::Pipeline>(transforms),
          .evaluation = std::make_shared<image::Pipeline>(Transforms{image::fit(size)}),
          .result = size,
          .decode = {.channels = 1}};
}

// A white shape on black that no flip or turn leaves as it is.
image::Pixels shape(image::Size size) {
  image::Pixels pixels = image::testing_support::flat(size, 1, 0);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      if (x > size.width / 5 && y > size.height / 4 && x + 2 * y < (size.width + 2 * size.height) / 2) {
        *pixels.at(x, y) = 255;
      }
    }
  }
  return pixels;
}

class PairDatasetTest : public ::testing::Test {
 protected:
  PairDatasetTest() { add("1", testing::text_of(image::encode_png(shape({96, 80})))); }

  void add(const std::string& name, const std::string& mask) const {
    write_deep(dir_, "imgs/" + name + ".png", testing::text_of(image::encode_png(shape({96, 80}))));
    write_deep(dir_, "masks/" + name + ".png", mask);
  }
  std::shared_ptr<const data::Dataset> open(const ImageSetup& with, bool augmented = true,
                                            const image::LabelMap& labels = image::LabelMap({0, 255})) const {
    return pair_dataset(pair_files(find_pairs(dir_.path())), labels, with, augmented);
  }

  const TempDir dir_;
};

TEST_F(PairDatasetTest, HasImagesAndTheClassesOfTheirPixels) {
  const auto set = open(setup({}, {96, 80}));
  EXPECT_EQ(set->size(), 1);
  EXPECT_EQ(set->classes(), 2);
  EXPECT_EQ(set->class_names(), (std::vector<std::string>{"0", "255"})) << "the masks' values";
  EXPECT_EQ(set->class_of(0), -1);
  const data::Batch batch = data::read_batch(*set, std::vector<int64_t>{0});
  EXPECT_EQ(batch.data().sizes(), (std::vector<int64_t>{1, 1, 80, 96}));
  EXPECT_EQ(batch.target().sizes(), (std::vector<int64_t>{1, 80, 96}));
  EXPECT_TRUE(at::equal(batch.data()[0][0], batch.target()[0].to(at::kFloat)));
  EXPECT_GT(batch.target().sum().item<int64_t>(), 500);
}

TEST_F(PairDatasetTest, ClassesOfColoursAreNamedByThem) {
  const auto set = open(setup({}, {96, 80}), true, image::LabelMap({0, image::mask_value(255, 0, 16)}));
  EXPECT_EQ(set->class_names(), (std::vector<std::string>{"0", "#ff0010"}));
}

// What is white in the image is class 1 in the mask, wherever a transform moves it.
TEST_F(PairDatasetTest, MaskFollowsItsImage) {
  const image::Size size{64, 48};
  const std::vector<Transforms> all = {
      {image::fit(size)},
      {image::random_resized_crop(size)},
      {image::fit(size), image::flip_x(1)},
      {image::fit(size), image::flip_y(1)},
      {image::random_crop(size, 20)},
      {image::random_affine({.degrees = 60, .translate_x = 0.3, .scale_low = 0.7, .scale_high = 1.2, .shear = 20}),
       image::fit(size)},
      {image::fit(size), image::random_affine({.degrees = 180})},
  };
  for (const Transforms& transforms : all) {
    const auto set = open(setup(transforms, size));
    for (uint32_t epoch = 0; epoch < 20; ++epoch) {
      const data::Batch batch = data::read_batch(*set, std::vector<int64_t>{0}, epoch, 3);
      const at::Tensor other = batch.data()[0][0].gt(0.5).ne(batch.target()[0].eq(1));
      EXPECT_LT(other.sum().item<int64_t>(), 64 * 48 / 25) << set->description() << ", epoch " << epoch;
    }
  }
}

TEST_F(PairDatasetTest, IsAugmentedByTheDrawAndNotForEvaluation) {
  const auto set = open(setup({image::random_resized_crop({32, 32})}, {32, 32}));
  const auto target = [](const data::Dataset& of, uint32_t epoch) {
    return data::read_batch(of, std::vector<int64_t>{0}, epoch).target();
  };
  EXPECT_TRUE(at::equal(target(*set, 1), target(*set, 1)));
  EXPECT_FALSE(at::equal(target(*set, 1), target(*set, 2)));
  const auto plain = set->for_evaluation();
  ASSERT_NE(plain, nullptr);
  EXPECT_TRUE(at::equal(target(*plain, 1), target(*plain, 2)));
  EXPECT_EQ(plain->for_evaluation(), nullptr);
}

TEST_F(PairDatasetTest, NamesAMaskThatDoesNotFit) {
  add("2", testing::text_of(image::encode_png(shape({96, 81}))));
  add("3", testing::text_of(image::encode_png(image::testing_support::flat({96, 80}, 1, 7))));
  add("4", "no image");
  const auto set = open(setup({image::fit({32, 32})}, {32, 32}));
  const auto read = [&](int64_t index) { data::read_batch(*set, std::vector<int64_t>{index}); };
  EXPECT_THAT(data_error([&] { read(1); }),
              AllOf(HasSubstr("masks/2.png: a mask of 96 x 81"), HasSubstr("imgs/2.png")));
  EXPECT_THAT(data_error([&] { read(2); }), HasSubstr("masks/3.png: pixel (0, 0) has the value 7"));
  EXPECT_THAT(data_error([&] { read(3); }), HasSubstr("masks/4.png: "));
  read(0);
}

TEST_F(PairDatasetTest, ItsMasksAreTurnedAsItsImages) {
  const auto pixels = shape({96, 80});
  write_deep(dir_, "imgs/1.png", testing::text_of(image::encode_png(pixels, {.orientation = 6})));
  const auto set = open(setup({}, {80, 96}));
  const data::Batch batch = data::read_batch(*set, std::vector<int64_t>{0});
  EXPECT_TRUE(at::equal(batch.data()[0][0], batch.target()[0].to(at::kFloat)));
}

// A picture that stands on its head has the size of one that doesn't.
TEST_F(PairDatasetTest, ItsMasksAreRefusedWhereNoSizeTellsHowTheyLie) {
  write_deep(dir_, "imgs/1.png", testing::text_of(image::encode_png(shape({96, 80}), {.orientation = 3})));
  const auto read = [&](image::MaskTurn turn) {
    ImageSetup with = setup({}, {96, 80});
    with.decode.mask_turn = turn;
    const data::Batch batch = data::read_batch(*open(with), std::vector<int64_t>{0});
    return at::equal(batch.data()[0][0], batch.target()[0].to(at::kFloat));
  };
  EXPECT_THAT(data_error([&] { read(image::MaskTurn::kBySize); }),
              AllOf(HasSubstr("masks/1.png: whether the mask is turned"), HasSubstr("imgs/1.png")));
  EXPECT_TRUE(read(image::MaskTurn::kAsImage));
  EXPECT_FALSE(read(image::MaskTurn::kNone));
}

TEST_F(PairDatasetTest, SaysWhatItIs) {
  const auto set = open(setup({image::fit({32, 32})}, {32, 32}));
  EXPECT_EQ(set->description(),
            "1 PNG with masks in " + dir_.path() + " (masks: 0 -> class 0, 255 -> class 1); Fit 32");
  EXPECT_EQ(set->name_of(0), dir_ / "imgs/1.png");
  EXPECT_EQ(set->listing().size(), 2u);
  const std::string before = set->fingerprint();
  write_deep(dir_, "masks/1.png", testing::png({96, 80}));
  EXPECT_NE(open(setup({}, {32, 32}))->fingerprint(), before) << "masks count";
}

TEST_F(PairDatasetTest, RefusesTransformsThatGiveAnotherSize) {
  try {
    data::read_batch(*open(setup({}, {32, 32})), std::vector<int64_t>{0});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("imgs/1.png: the transforms ("));
  }
}

TEST_F(PairDatasetTest, OpeningAPairIsDecodingIt) {
  const auto set =
      pair_dataset(std::make_shared<testing::SlowToOpen>(testing::text_of(image::encode_png(shape({96, 80}))), true),
                   image::LabelMap({0, 255}), setup({}, {96, 80}), false);
  data::SampleRows rows(set->fields(), 1);
  data::ReadStats stats;
  set->read(0, {}, rows.row(0), stats);
  EXPECT_GE(stats.decode_ns, testing::SlowToOpen::kOpenMs * 1'000'000);
}

}  // namespace
}  // namespace lockstep::datasets
