#include "lockstep/predict/masks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::predict {
namespace {

using image::Pixels;

// Class 1 in the upper left quarter, 2 in the lower right one.
at::Tensor scores(int64_t side) {
  at::Tensor all = at::zeros({3, side, side});
  all[0].fill_(1);
  all[1].narrow(0, 0, side / 2).narrow(1, 0, side / 2).fill_(5);
  all[2].narrow(0, side / 2, side / 2).narrow(1, side / 2, side / 2).fill_(5);
  return all;
}

TEST(Masks, HaveTheHighestClassOfEachPixel) {
  const Pixels classes = classes_of(scores(4), {4, 4});
  EXPECT_EQ(*classes.at(0, 0), 1);
  EXPECT_EQ(*classes.at(1, 1), 1);
  EXPECT_EQ(*classes.at(2, 1), 0);
  EXPECT_EQ(*classes.at(3, 3), 2);
}

TEST(Masks, HaveTheImagesSize) {
  const Pixels classes = classes_of(scores(4).to(at::kBFloat16), {40, 20});
  EXPECT_EQ(classes.size(), (image::Size{40, 20}));
  EXPECT_EQ(*classes.at(2, 2), 1);
  EXPECT_EQ(*classes.at(37, 2), 0);
  EXPECT_EQ(*classes.at(37, 17), 2);
}

TEST(Masks, OfOneClassAreWhereItsScoreIsPositive) {
  const at::Tensor scores = at::tensor({-1.0f, 2.0f, 0.0f, 0.5f}).view({1, 2, 2});
  const Pixels classes = classes_of(scores, {2, 2});
  EXPECT_EQ(*classes.at(0, 0), 0);
  EXPECT_EQ(*classes.at(1, 0), 1);
  EXPECT_EQ(*classes.at(0, 1), 0);
  EXPECT_EQ(*classes.at(1, 1), 1);
  EXPECT_EQ(*to_grey(classes, 1).at(1, 0), 255);
}

TEST(Masks, AreGreyFromBlackToWhite) {
  const Pixels grey = to_grey(classes_of(scores(4), {4, 4}), 3);
  EXPECT_EQ(*grey.at(2, 1), 0);
  EXPECT_EQ(*grey.at(0, 0), 127);
  EXPECT_EQ(*grey.at(3, 3), 255);
}

TEST(Masks, LieOverTheImageInColours) {
  Pixels image;
  image.reshape({4, 4}, 3);
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 4; ++x) image.at(x, y)[0] = 100, image.at(x, y)[1] = 50, image.at(x, y)[2] = 0;
  }
  const Pixels shown = overlay(image, classes_of(scores(4), {4, 4}));
  EXPECT_EQ(shown.at(2, 1)[0], 100) << "class 0 leaves the image as it is";
  EXPECT_EQ(shown.at(2, 1)[1], 50);
  EXPECT_EQ(shown.at(0, 0)[0], (100 + 255) / 2);
  EXPECT_EQ(shown.at(0, 0)[2], 64 / 2);
}

}  // namespace
}  // namespace lockstep::predict
