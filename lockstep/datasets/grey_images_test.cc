#include "lockstep/datasets/grey_images.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "lockstep/data/read_batch.h"
#include "lockstep/datasets/files/testing/files.h"

namespace lockstep::datasets {
namespace {

using testing::data_error;
using ::testing::HasSubstr;

GreyImages all_bytes() {
  std::vector<uint8_t> pixels(256);
  std::iota(pixels.begin(), pixels.end(), uint8_t{0});
  return {.pixels = pixels, .labels = {1, 0}, .rows = 8, .columns = 16, .classes = 2, .name = "set"};
}

TEST(GreyImages, DividesEveryByteAsAFloatBy255) {
  const auto set = make_dataset(all_bytes());
  const data::Batch batch = data::read_batch(*set, std::vector<int64_t>{0, 1});
  const auto* data = batch.data().const_data_ptr<float>();
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(data[byte], static_cast<float>(byte) / 255.f) << byte;
  EXPECT_TRUE(at::equal(batch.data().flatten(), at::arange(256, at::kByte).to(at::kFloat) / 255));
  EXPECT_TRUE(at::equal(batch.target(), at::tensor({1, 0}, at::kLong)));
}

TEST(GreyImages, KeepsSharesAsTheyAre) {
  const auto set = make_dataset({.pixels = std::vector<float>{.1f, .2f, .3f, 1.f},
                                 .labels = {3, 4},
                                 .rows = 1,
                                 .columns = 2,
                                 .classes = 5,
                                 .name = "set"});
  EXPECT_TRUE(
      at::equal(data::read_batch(*set, std::vector<int64_t>{1}).data(), at::tensor({.3f, 1.f}).view({1, 1, 1, 2})));
}

TEST(GreyImages, AreToldFromOthersOfTheSameBytes) {
  GreyImages turned = all_bytes();
  std::swap(turned.rows, turned.columns);
  EXPECT_NE(make_dataset(std::move(turned))->fingerprint(), make_dataset(all_bytes())->fingerprint());
}

TEST(GreyImages, ChecksCountsAndLabels) {
  GreyImages images = all_bytes();
  images.labels = {0};
  EXPECT_THAT(data_error([&] { make_dataset(images); }), HasSubstr("set: 2 images, but 1 labels"));
  images.labels = {0, 2};
  EXPECT_THAT(data_error([&] { make_dataset(images); }), HasSubstr("label 1 is 2"));
  images.labels = {};
  images.pixels = std::vector<uint8_t>{};
  EXPECT_THAT(data_error([&] { make_dataset(images); }), HasSubstr("holds no images"));
}

}  // namespace
}  // namespace lockstep::datasets
