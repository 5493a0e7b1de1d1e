#include "lockstep/track/tensors/tensor_pixels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

namespace lockstep::track {
namespace {

TEST(TensorPixels, ImagesAreStretchedFromBlackToWhite) {
  const image::Pixels grey = image_pixels(at::tensor({-1.0f, 0.0f, 1.0f, 3.0f}).reshape({1, 2, 2}));
  EXPECT_EQ(grey.size(), (image::Size{2, 2}));
  EXPECT_EQ(grey.at(0, 0)[0], 0);
  EXPECT_EQ(grey.at(1, 0)[2], 64);
  EXPECT_EQ(grey.at(1, 1)[1], 255);
  const image::Pixels colours = image_pixels(at::tensor({0.0f, 0.5f, 1.0f}).reshape({3, 1, 1}).to(at::kHalf));
  EXPECT_EQ(colours.at(0, 0)[1], 128);
  EXPECT_EQ(image_pixels(at::full({1, 1, 1}, 7.0f)).at(0, 0)[0], 0) << "an even image";
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(image_pixels(at::full({1, 1, 1}, nan)).at(0, 0)[0], 0);
}

TEST(TensorPixels, MasksAreClassNumbers) {
  const image::Pixels classes = class_pixels(at::tensor({3, -1, 248, 250}, at::kLong).reshape({2, 2}));
  EXPECT_EQ(*classes.at(0, 0), 3);
  EXPECT_EQ(*classes.at(1, 0), 0);
  EXPECT_EQ(*classes.at(0, 1), 248);
  EXPECT_EQ(*classes.at(1, 1), 2);
}

}  // namespace
}  // namespace lockstep::track
