#include "lockstep/track/tensors/mask_picture.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>

#include "lockstep/image/class_colours.h"
#include "lockstep/image/decoder.h"

namespace lockstep::track {
namespace {

using Rgb = std::array<int, 3>;

image::Pixels decoded(const Picture& picture) {
  image::Decoder decoder;
  image::Pixels pixels;
  const auto* bytes = reinterpret_cast<const uint8_t*>(picture.png.data());
  const image::Size size = decoder.open({bytes, picture.png.size()}, "the picture", {.channels = 3}).upright();
  EXPECT_EQ(size, (image::Size{picture.width, picture.height}));
  decoder.decode({0, 0, size.width, size.height}, size, pixels);
  return pixels;
}

Rgb at(const image::Pixels& pixels, int x, int y) {
  return {pixels.at(x, y)[0], pixels.at(x, y)[1], pixels.at(x, y)[2]};
}

Rgb rgb(image::Colour colour) { return {colour[0], colour[1], colour[2]}; }

TEST(MaskPicture, ShowsImageMaskAndPredictionSideBySide) {
  const at::Tensor image = at::tensor({-1.0f, 0.0f, 1.0f, 3.0f}).reshape({1, 2, 2});
  const at::Tensor mask = at::tensor({0, 1, 2, -1}, at::kLong).reshape({2, 2});
  const at::Tensor predicted = at::tensor({1, 1, 0, 0}, at::kLong).reshape({2, 2});
  const Picture picture = mask_picture(image, mask, predicted);
  EXPECT_EQ(picture.width, 8);
  EXPECT_EQ(picture.height, 2);
  const image::Pixels pixels = decoded(picture);
  EXPECT_EQ(at(pixels, 0, 0), (Rgb{0, 0, 0}));
  EXPECT_EQ(at(pixels, 1, 0), (Rgb{64, 64, 64}));
  EXPECT_EQ(at(pixels, 1, 1), (Rgb{255, 255, 255}));
  EXPECT_EQ(at(pixels, 2, 0), (Rgb{255, 255, 255})) << "between two";
  EXPECT_EQ(at(pixels, 3, 0), (Rgb{0, 0, 0}));
  EXPECT_EQ(at(pixels, 4, 0), rgb(image::class_colour(1)));
  EXPECT_EQ(at(pixels, 3, 1), rgb(image::class_colour(2)));
  EXPECT_EQ(at(pixels, 4, 1), (Rgb{0, 0, 0})) << "no class";
  EXPECT_EQ(at(pixels, 6, 0), rgb(image::class_colour(1)));
}

TEST(MaskPicture, AColourImageKeepsItsColours) {
  const at::Tensor image = at::tensor({0.0f, 0.5f, 1.0f}).reshape({3, 1, 1}), mask = at::zeros({1, 1}, at::kLong);
  EXPECT_EQ(at(decoded(mask_picture(image, mask, mask)), 0, 0), (Rgb{0, 128, 255}));
}

TEST(MaskPicture, AnEvenImageIsBlack) {
  const at::Tensor image = at::full({1, 1, 1}, 7.0f), mask = at::zeros({1, 1}, at::kLong);
  EXPECT_EQ(at(decoded(mask_picture(image, mask, mask)), 0, 0), (Rgb{0, 0, 0}));
}

}  // namespace
}  // namespace lockstep::track
