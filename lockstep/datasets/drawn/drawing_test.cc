#include "lockstep/datasets/drawn/drawing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep::datasets {
namespace {

TEST(Frame, TurnsAndScales) {
  const Frame frame{.x = 10, .y = 20, .cosine = 0, .sine = 1, .unit = 5};
  EXPECT_FLOAT_EQ(frame.of(10, 25).u, 1);
  EXPECT_FLOAT_EQ(frame.of(10, 25).v, 0);
  EXPECT_FLOAT_EQ(frame.of(15, 20).v, -1);
}

TEST(Frame, RandomTurnsKeepLengths) {
  RandomStream random(1, Purpose::kSynthetic, 0, 0);
  for (int i = 0; i < 100; ++i) {
    const Frame frame = Frame::random_turn(random, 0, 0, 1);
    EXPECT_NEAR(frame.cosine * frame.cosine + frame.sine * frame.sine, 1, 1e-6);
    EXPECT_GE(frame.cosine, 0);
  }
}

// Each shape has its own area, within its frame.
TEST(Shapes, CoverTheirAreas) {
  const std::vector<double> areas = {M_PI * .8, 2.56, 1.7 * 1.7 / 1.7, 4 * .6 * .95 - .36, M_PI * .7};
  constexpr int kSteps = 400;
  for (int shape = 0; shape < kShapes; ++shape) {
    int covered = 0;
    for (int i = -kSteps; i <= kSteps; ++i) {
      for (int j = -kSteps; j <= kSteps; ++j) {
        const Frame::Coordinates at{1.25f * static_cast<float>(i) / kSteps, 1.25f * static_cast<float>(j) / kSteps};
        if (!covers(static_cast<Shape>(shape), at)) continue;
        ++covered;
        EXPECT_LE(std::max(std::fabs(at.u), std::fabs(at.v)), 1);
      }
    }
    const double area = covered * std::pow(1.25 / kSteps, 2);
    EXPECT_NEAR(area, areas[static_cast<size_t>(shape)], .02) << shape;
  }
}

TEST(Paint, StripesChangeOneWayAndChecksBoth) {
  const Colour black{0, 0, 0}, white{1, 1, 1};
  const Paint stripes{.texture = Texture::kStripes, .frame = {.unit = 2}, .first = black, .second = white};
  EXPECT_EQ(stripes.at(1, 1).red, 0);
  EXPECT_EQ(stripes.at(3, 1).red, 1);
  EXPECT_EQ(stripes.at(3, 3).red, 1);
  EXPECT_EQ(stripes.at(-1, 3).red, 1);
  const Paint checks{.texture = Texture::kChecks, .frame = {.unit = 2}, .first = black, .second = white};
  EXPECT_EQ(checks.at(3, 1).red, 1);
  EXPECT_EQ(checks.at(3, 3).red, 0);
  EXPECT_EQ(checks.at(-1, 1).red, 1);
}

TEST(Canvas, NoiseStaysWithinStrengthAndRange) {
  std::vector<float> pixels(3 * 16 * 16, .5f);
  Canvas canvas(pixels, 16);
  canvas.set(1, 2, {0, .5f, 1});
  EXPECT_EQ(pixels[2 * 16 + 1], 0);
  EXPECT_EQ(pixels[2 * 256 + 2 * 16 + 1], 1);
  RandomStream random(1, Purpose::kSynthetic, 0, 0);
  canvas.add_noise(random, .25f);
  EXPECT_GE(*std::min_element(pixels.begin(), pixels.end()), 0);
  EXPECT_LE(*std::max_element(pixels.begin(), pixels.end()), 1);
  EXPECT_NEAR(pixels[0], .5, .25);
  EXPECT_NE(pixels[0], pixels[1]);
}

}  // namespace
}  // namespace lockstep::datasets
