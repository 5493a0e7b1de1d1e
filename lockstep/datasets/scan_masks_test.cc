#include "lockstep/datasets/scan_masks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/datasets/pairs.h"
#include "lockstep/datasets/testing/picture_files.h"
#include "lockstep/image/mask_value.h"
#include "lockstep/image/testing/encode_gif.h"
#include "lockstep/image/testing/encode_npy.h"

namespace lockstep::datasets {
namespace {

using ::testing::AllOf;
using testing::data_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::write_deep;

// Pixel i has the value values[i mod n].
image::Pixels mask_of(const std::vector<uint8_t>& values, image::Size size = {20, 10}) {
  image::Pixels pixels;
  pixels.reshape(size, 1);
  for (int i = 0; i < size.width * size.height; ++i) {
    *pixels.at(i % size.width, i / size.width) = values[static_cast<size_t>(i) % values.size()];
  }
  return pixels;
}

// A data set whose masks have these files' contents.
class MaskScan : public ::testing::Test {
 protected:
  std::shared_ptr<const ImageSource> add(const std::string& mask_content) {
    const std::string name = cat(++count_);
    write_deep(dir_, "imgs/" + name + ".jpg", "");
    write_deep(dir_, "masks/" + name + ".png", mask_content);
    return pair_files(find_pairs(dir_.path()));
  }
  const TempDir dir_{};
  int count_ = 10;
};

TEST_F(MaskScan, FindsAllValuesOfAllFormats) {
  add(testing::text_of(image::encode_png(mask_of({0, 255}))));
  add(testing::text_of(image::encode_png(mask_of({7}), {.colour = image::PngColour::kPalette})));
  add(testing::text_of(image::testing_support::encode_gif(mask_of({0, 1}))));
  add(testing::text_of(image::testing_support::encode_npy("'<i8'", "(1, 1)", {9, 1, 0, 0, 0, 0, 0, 0})));
  const auto pairs = add(testing::text_of(image::encode_png(mask_of({128, 255}))));
  for (const int threads : {1, 2, 7}) {
    EXPECT_THAT(scan_masks(*pairs, threads),
                ElementsAre(0, 7, 128, 255, 265, image::mask_value(0, 255, 7), image::mask_value(1, 254, 7)))
        << threads;
  }
}

std::string look_anew(const std::string&, const data::Findings::Look& look) { return look(); }

TEST_F(MaskScan, GivesEachValueAClass) {
  const auto pairs = add(testing::text_of(image::encode_png(mask_of({0, 255}))));
  const auto labels = labels_of(*pairs, {}, look_anew);
  EXPECT_EQ(text_of(labels), "masks: 0 -> class 0, 255 -> class 1");
  const data::OnOneRank elsewhere = [](const std::function<std::string()>&) { return "3 4 5"; };
  EXPECT_THAT(labels_of(*pairs, {.path = dir_.path(), .on_one_rank = elsewhere}, look_anew).values(),
              ElementsAre(3, 4, 5));
  const OpenOptions seen{.path = dir_.path(), .mask_values = {0, 7}};
  EXPECT_THAT(labels_of(*pairs, seen, look_anew).values(), ElementsAre(0, 7)) << "not scanned";
  EXPECT_EQ(text_of(image::LabelMap({0, image::mask_value(255, 0, 0)})), "masks: 0 -> class 0, #ff0000 -> class 1");
}

TEST_F(MaskScan, SaysHowManyClassesThereAreWhereTheyAreMany) {
  std::vector<uint32_t> values(20);
  for (uint32_t i = 0; i < 20; ++i) values[i] = i;
  EXPECT_THAT(text_of(image::LabelMap(values)), HasSubstr("7 -> class 7, … (20 classes)"));
}

TEST_F(MaskScan, RefusesMasksOfOneValue) {
  const auto pairs = add(testing::text_of(image::encode_png(mask_of({0}))));
  EXPECT_THAT(data_error([&] { labels_of(*pairs, {}, look_anew); }), HasSubstr("one value alone (0)"));
}

TEST_F(MaskScan, NamesTheMaskWithWhichThereAreTooManyValues) {
  add(testing::text_of(image::encode_png(mask_of({0, 255}))));
  const auto pairs = add(testing::png({64, 64}));
  EXPECT_THAT(data_error([&] { scan_masks(*pairs, 2); }), AllOf(HasSubstr("masks/12.png"), HasSubstr("256 values")));
}

TEST_F(MaskScan, NamesTheFirstDamagedMaskAtAnyNumberOfThreads) {
  add(testing::text_of(image::encode_png(mask_of({0, 255}))));
  for (int i = 0; i < 20; ++i) add("damaged");
  const auto pairs = pair_files(find_pairs(dir_.path()));
  for (const int threads : {1, 2, 7}) {
    EXPECT_THAT(data_error([&] { scan_masks(*pairs, threads); }), HasSubstr("masks/12.png: ")) << threads;
  }
}

}  // namespace
}  // namespace lockstep::datasets
