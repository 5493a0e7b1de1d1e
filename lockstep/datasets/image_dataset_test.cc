#include "lockstep/datasets/image_dataset.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lockstep/data/byte_tables.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/data/sample_rows.h"
#include "lockstep/data/subset.h"
#include "lockstep/datasets/class_folders.h"
#include "lockstep/datasets/testing/picture_files.h"
#include "lockstep/datasets/testing/slow_to_open.h"
#include "lockstep/image/crops.h"
#include "lockstep/image/device/batch_decoder.h"
#include "lockstep/image/flips.h"
#include "lockstep/image/rand_augment.h"

namespace lockstep::datasets {
namespace {

using testing::data_error;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::write_deep;

std::shared_ptr<const image::Pipeline> pipeline(std::vector<std::shared_ptr<const image::Transform>> transforms) {
  return std::make_shared<image::Pipeline>(std::move(transforms));
}

ImageSetup setup(image::Size size) {
  return {.train = pipeline({image::random_resized_crop(size), image::flip_x()}),
          .evaluation = pipeline({image::center_crop(size)}),
          .augment = "standard",
          .result = size};
}

class ImageDatasetTest : public ::testing::Test {
 protected:
  ImageDatasetTest() { testing::write_classes(dir_, "", {"cats", "dogs"}, 3); }
  std::shared_ptr<const data::Dataset> open(const ImageSetup& with, bool augmented = false) const {
    return image_dataset(class_folders(dir_.path()), with, augmented);
  }
  at::Tensor first(const ImageSetup& with, bool augmented = false, uint32_t epoch = 0) const {
    return data::read_batch(*open(with, augmented), std::vector<int64_t>{0}, epoch, 1).data();
  }
  const TempDir dir_;
};

TEST_F(ImageDatasetTest, HasPixelsAndClasses) {
  const auto set = open(setup({24, 20}));
  EXPECT_EQ(set->sample_shape(), (std::vector<int64_t>{3, 20, 24}));
  EXPECT_EQ(set->classes(), 2);
  EXPECT_EQ(set->class_names(), (std::vector<std::string>{"cats", "dogs"}));
  const data::Batch batch = data::read_batch(*set, std::vector<int64_t>{0, 5});
  EXPECT_EQ(batch.target()[0].item<int64_t>(), 0);
  EXPECT_EQ(batch.target()[1].item<int64_t>(), 1);
  image::Decoder decoder;
  std::vector<uint8_t> memory;
  const auto size = decoder.open(class_folders(dir_.path())->read(0, memory).bytes, "first").upright();
  image::Pixels pixels;
  decoder.decode({0, 0, size.width, size.height}, size, pixels);
  const int x = (size.width - 24) / 2 + 3, y = (size.height - 20) / 2 + 2;
  for (int c = 0; c < 3; ++c) {
    EXPECT_EQ(batch.data()[0][c][2][3].item<float>(), static_cast<float>(pixels.at(x, y)[c]) / 255) << c;
  }
}

TEST_F(ImageDatasetTest, ComesInEachTypeAndLayout) {
  const at::Tensor wanted = first(setup({24, 24}));
  for (const at::ScalarType dtype : {at::kByte, at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const bool channels_last : {false, true}) {
      ImageSetup with = setup({24, 24});
      with.dtype = dtype;
      with.channels_last = channels_last;
      const at::Tensor data = first(with);
      EXPECT_EQ(data.scalar_type(), dtype);
      EXPECT_EQ(data.is_contiguous(at::MemoryFormat::ChannelsLast), channels_last);
      EXPECT_TRUE(at::equal(data, dtype == at::kByte ? (wanted * 255).round().to(dtype) : wanted.to(dtype))) << dtype;
    }
  }
  ImageSetup with = setup({24, 24});
  with.dtype = at::kDouble;
  EXPECT_THROW(open(with), ConfigError);
}

TEST_F(ImageDatasetTest, AsBytesHasTheTableThatMakesTheSameNumbers) {
  const std::vector<int64_t> all = {0, 1, 2, 3, 4, 5};
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const bool channels_last : {false, true}) {
      for (const int channels : {1, 3}) {
        ImageSetup with = setup({24, 20});
        with.normalize = {.mean = {0.5f, 0.25f, 0}, .std = {0.5f, 0.25f, 2}};
        with.dtype = dtype;
        with.channels_last = channels_last;
        with.decode.channels = channels;
        const auto numbers = open(with, true);
        with.as_bytes = true;
        const auto bytes = open(with, true);
        EXPECT_EQ(bytes->transforms(), numbers->transforms()) << "a loop may go on with either";
        data::Batch batch = data::read_batch(*bytes, all, 2, 1);
        EXPECT_EQ(batch.data().scalar_type(), at::kByte);
        data::ByteTables(bytes->fields(), at::kCPU).apply(batch);
        EXPECT_EQ(batch.data().scalar_type(), dtype);
        EXPECT_TRUE(at::equal(batch.data(), data::read_batch(*numbers, all, 2, 1).data())) << dtype << channels;
        EXPECT_TRUE(data::has_tables(bytes->for_evaluation()->fields()));
      }
    }
  }
  ImageSetup with = setup({24, 24});
  with.dtype = at::kByte;
  with.as_bytes = true;
  EXPECT_THROW(open(with), ConfigError) << "bytes that are not normalised";
}

TEST_F(ImageDatasetTest, EncodedOnesAreThoseOfTheHostOnceTheyAreDecoded) {
  write_deep(dir_, "cats/a.png", testing::png({50, 45}));
  const std::vector<int64_t> all = {0, 1, 2, 3, 4, 5, 6};
  for (const bool channels_last : {false, true}) {
    ImageSetup with = setup({24, 20});
    with.channels_last = channels_last;
    with.as_bytes = true;
    const auto pixels = open(with, true);
    with.encoded = true;
    const auto encoded = open(with, true);
    EXPECT_EQ(encoded->sample_shape(), pixels->sample_shape());
    EXPECT_EQ(encoded->fingerprint(), pixels->fingerprint());
    EXPECT_NE(encoded->transforms(), pixels->transforms()) << "a device's pixels may be others";
    const data::Batch rows = data::read_batch(*encoded, all, 2, 1), wanted = data::read_batch(*pixels, all, 2, 1);
    EXPECT_EQ(rows.data().sizes(), at::IntArrayRef({7, image::row_bytes({24, 20})}));
    image::BatchDecoder decoder(std::make_shared<image::HostDecoder>(), at::kCPU);
    image::DecodedCounts counts;
    EXPECT_TRUE(at::equal(decoder.decode(rows.data(), {24, 20}, channels_last, counts), wanted.data()));
    EXPECT_TRUE(at::equal(rows.target(), wanted.target()));
    EXPECT_EQ(counts.text(), "6 on the device, 1 on the host (1 PNG)");
    EXPECT_FALSE(data::has_encoded(encoded->for_evaluation()->fields())) << "what `lockstep eval` sees";
    EXPECT_FALSE(data::has_encoded(open(with)->fields()));
  }
}

TEST_F(ImageDatasetTest, WhatADeviceCantDoIsRefused) {
  const auto refusal = [&](const auto& change) {
    ImageSetup with = setup({24, 24});
    with.as_bytes = with.encoded = true;
    change(with);
    try {
      open(with, true);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal([](ImageSetup&) {}), "");
  EXPECT_THAT(refusal([](ImageSetup& with) { with.as_bytes = false; }), HasSubstr("normalised there, too"));
  EXPECT_THAT(refusal([](ImageSetup& with) { with.decode.fast = true; }), HasSubstr("--fast-decode"));
  EXPECT_THAT(refusal([](ImageSetup& with) { with.decode.channels = 1; }), HasSubstr("three channels, not 1"));
  EXPECT_THAT(refusal([](ImageSetup& with) {
                with.train = pipeline({image::random_resized_crop({24, 24}), image::rand_augment()});
              }),
              HasSubstr("the transform \"RandAugment"));
}

TEST_F(ImageDatasetTest, IsNormalised) {
  ImageSetup with = setup({24, 24});
  const at::Tensor plain = first(with);
  with.normalize = {.mean = {0.5f, 0.25f, 0}, .std = {0.5f, 0.25f, 2}};
  const at::Tensor mean = at::tensor({0.5f, 0.25f, 0.f}).view({1, 3, 1, 1});
  const at::Tensor std = at::tensor({0.5f, 0.25f, 2.f}).view({1, 3, 1, 1});
  EXPECT_TRUE(at::equal(first(with), (plain - mean) / std));
}

TEST_F(ImageDatasetTest, IsAugmentedByTheDrawAndNotForEvaluation) {
  const ImageSetup with = setup({24, 24});
  EXPECT_TRUE(at::equal(first(with, true, 3), first(with, true, 3)));
  EXPECT_FALSE(at::equal(first(with, true, 3), first(with, true, 4)));
  EXPECT_TRUE(at::equal(first(with, false, 3), first(with, false, 4)));
  const auto evaluated = open(with, true)->for_evaluation();
  ASSERT_NE(evaluated, nullptr);
  EXPECT_TRUE(at::equal(data::read_batch(*evaluated, std::vector<int64_t>{0}).data(), first(with)));
  EXPECT_EQ(evaluated->for_evaluation(), nullptr);
}

TEST_F(ImageDatasetTest, SaysWhatIsDoneToItsImages) {
  EXPECT_THAT(open(setup({24, 24}), true)->description(),
              HasSubstr("6 JPEGs of 2 classes in " + dir_.path() + "; standard: RandomResizedCrop 24, "));
  EXPECT_THAT(open(setup({24, 24}))->description(), HasSubstr("; CenterCrop 24"));
}

// A loop is not resumed with others, and may be with images that have moved.
TEST_F(ImageDatasetTest, TransformsAreAllThatItsValuesDependOnAndNoPlace) {
  const auto text = [&](const auto& change) {
    ImageSetup with = setup({24, 24});
    change(with);
    return open(with, true)->transforms();
  };
  const std::string own = text([](ImageSetup&) {});
  EXPECT_EQ(own, "RandomResizedCrop 24, flip 0.5; Float, mean 0 0 0, std 1 1 1");
  EXPECT_EQ(open(setup({24, 24}))->transforms(), "CenterCrop 24; Float, mean 0 0 0, std 1 1 1");
  EXPECT_EQ(data::subset(open(setup({24, 24}), true), {0, 1}, "two")->transforms(), own);
  EXPECT_EQ(text([](ImageSetup& with) { with.channels_last = true; }), own) << "the same values";
  EXPECT_EQ(text([](ImageSetup& with) { with.augment = "mine"; }), own) << "a name";
  const std::set<std::string> others = {own,
                                        text([](ImageSetup& with) { with.normalize.mean[1] = 0.5f; }),
                                        text([](ImageSetup& with) { with.dtype = at::kBFloat16; }),
                                        text([](ImageSetup& with) { with.dtype = at::kByte; }),
                                        text([](ImageSetup& with) { with.decode.fast = true; }),
                                        text([](ImageSetup& with) { with.decode.exif = false; }),
                                        text([](ImageSetup& with) { with.decode.channels = 1; }),
                                        text([](ImageSetup& with) { with.train = with.evaluation; })};
  EXPECT_EQ(others.size(), 8u);
}

TEST_F(ImageDatasetTest, TellsWhereItsTimeWent) {
  const auto set = open(setup({24, 24}));
  data::SampleRows rows(set->fields(), 1);
  data::ReadStats stats;
  set->read(0, {}, rows.row(0), stats);
  EXPECT_GT(stats.read_ns, 0);
  EXPECT_GT(stats.decode_ns, 0);
  EXPECT_GT(stats.transform_ns, 0);
  EXPECT_EQ(stats.bytes, static_cast<int64_t>(std::filesystem::file_size(dir_ / "cats/0.jpg")));
}

TEST_F(ImageDatasetTest, OpeningAnImageIsDecodingIt) {
  const auto set = image_dataset(std::make_shared<testing::SlowToOpen>(testing::png()), setup({24, 24}), false);
  data::SampleRows rows(set->fields(), 1);
  data::ReadStats stats;
  set->read(0, {}, rows.row(0), stats);
  EXPECT_GE(stats.decode_ns, testing::SlowToOpen::kOpenMs * 1'000'000);
}

TEST_F(ImageDatasetTest, NamesADamagedImageAndReadsOn) {
  dir_.write("cats/0.jpg", testing::jpeg().substr(0, 300));
  dir_.write("cats/1.jpg", "<html>not found</html>");
  dir_.write("cats/2.jpg", "");
  const auto set = open(setup({24, 24}));
  for (const int64_t index : {0, 1, 2}) {
    EXPECT_THAT(data_error([&] { data::read_batch(*set, std::vector<int64_t>{index}); }),
                HasSubstr(cat("cats/", index, ".jpg: ")));
  }
  EXPECT_EQ(data::read_batch(*set, std::vector<int64_t>{3}).size(), 1);
}

TEST_F(ImageDatasetTest, RefusesTransformsThatGiveAnotherSize) {
  ImageSetup with = setup({24, 24});
  with.result = {25, 24};
  try {
    first(with);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cats/0.jpg: the transforms ("));
  }
}

TEST_F(ImageDatasetTest, ComesInGrey) {
  ImageSetup with = setup({24, 24});
  with.decode.channels = 1;
  EXPECT_EQ(first(with).sizes(), (std::vector<int64_t>{1, 1, 24, 24}));
}

TEST_F(ImageDatasetTest, TurnsImagesAsTheyAreMarked) {
  const auto pixels = image::testing_support::picture({40, 30}, 3, 1);
  dir_.write("cats/0.jpg", testing::text_of(image::encode_jpeg(pixels, {.orientation = 6})));
  dir_.write("cats/1.jpg", testing::text_of(image::encode_jpeg(pixels)));
  ImageSetup with = setup({24, 24});
  const auto both = [&] { return data::read_batch(*open(with), std::vector<int64_t>{0, 1}).data(); };
  EXPECT_TRUE(at::equal(both()[0], both()[1].rot90(-1, {1, 2})));
  with.decode.exif = false;
  EXPECT_TRUE(at::equal(both()[0], both()[1]));
}

}  // namespace
}  // namespace lockstep::datasets
