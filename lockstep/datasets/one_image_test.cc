#include "lockstep/datasets/one_image.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/datasets/augment.h"
#include "lockstep/image/encode.h"

namespace lockstep::datasets {
namespace {

using ::testing::HasSubstr;

class OneImage : public ::testing::Test {
 protected:
  std::string write(const std::string& name, image::Size size, int channels, uint8_t level = 51) const {
    image::Pixels pixels;
    pixels.reshape(size, channels);
    for (int y = 0; y < size.height; ++y) {
      for (int x = 0; x < size.width; ++x) {
        for (int c = 0; c < channels; ++c) pixels.at(x, y)[c] = level;
      }
    }
    const auto png = image::encode_png(pixels);
    std::ofstream(dir_ / name, std::ios::binary).write(reinterpret_cast<const char*>(png.data()), std::ssize(png));
    return dir_ / name;
  }
  static at::Tensor read(const data::Dataset& data) { return data::read_batch(data, std::array<int64_t, 1>{0}).data(); }
  template <typename Act>
  static std::string fault(const Act& act) {
    try {
      act();
    } catch (const DataError& error) {
      return error.what();
    }
    return "none";
  }

  testing_support::TempDir dir_;
};

TEST_F(OneImage, OfUNetIsWholeAtItsProportions) {
  const std::string file = write("a.png", {100, 62}, 3);
  const auto data = one_image(file, whole_image_setup(file, {.path = {}, .size = 32}, 3));
  const at::Tensor image = read(*data);
  EXPECT_EQ(image.sizes(), at::IntArrayRef({1, 3, 32, 48}));
  EXPECT_TRUE(at::allclose(image, at::full_like(image, 0.2)));
  EXPECT_EQ(data->size(), 1);
}

TEST_F(OneImage, IsGreyOrColouredAsTheNetworkIs) {
  const std::string grey = write("grey.png", {32, 32}, 1), coloured = write("coloured.png", {32, 32}, 3);
  EXPECT_EQ(read(*one_image(grey, whole_image_setup(grey, {.path = {}, .size = 32}, 3))).size(1), 3);
  EXPECT_EQ(read(*one_image(grey, whole_image_setup(grey, {.path = {}, .size = 32}, 1))).size(1), 1);
  EXPECT_THAT(fault([&] { whole_image_setup(coloured, {.path = {}, .size = 32}, 1); }),
              HasSubstr("coloured.png: the network has 1 input channel, and the image 3"));
}

TEST_F(OneImage, AChannelThatTheNetworkLacksIsRefused) {
  image::Pixels pixels;
  pixels.reshape({32, 32}, 3);
  const auto png = image::encode_png(pixels, {.colour = image::PngColour::kAlpha});
  const std::string file = dir_ / "cat.png";
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(png.data()), std::ssize(png));
  EXPECT_THAT(fault([&] { whole_image_setup(file, {.path = {}, .size = 32}, 3); }),
              HasSubstr("cat.png: the network has 3 input channels, and the image 4"));
}

TEST_F(OneImage, OfDigitsIsScaledAndGrey) {
  const std::string file = write("a.png", {40, 20}, 3);
  const at::Tensor image = read(*one_image(file, grey_image_setup({.path = file}, {28, 28})));
  EXPECT_EQ(image.sizes(), at::IntArrayRef({1, 1, 28, 28}));
  EXPECT_TRUE(at::allclose(image, at::full_like(image, 0.2)));
}

TEST_F(OneImage, OfPhotographsIsAnEvaluations) {
  const std::string file = write("a.png", {300, 256}, 3);
  const at::Tensor image = read(*one_image(file, photograph_setup({.path = file})));
  EXPECT_EQ(image.sizes(), at::IntArrayRef({1, 3, 224, 224}));
  EXPECT_NEAR(image[0][0][0][0].item<double>(), (0.2 - 0.485) / 0.229, 1e-6);
}

TEST_F(OneImage, WhatIsNoneIsNamed) {
  std::ofstream(dir_ / "bad.png") << "not an image";
  const std::string file = dir_ / "bad.png";
  EXPECT_THAT(fault([&] { whole_image_setup(file, {.path = {}, .size = 32}, 3); }), HasSubstr("bad.png"));
  EXPECT_THAT(fault([&] { read(*one_image(file, photograph_setup({.path = file}))); }), HasSubstr("bad.png"));
  EXPECT_THAT(fault([&] { read(*one_image(dir_ / "no.png", photograph_setup({}))); }), HasSubstr("no.png"));
}

}  // namespace
}  // namespace lockstep::datasets
