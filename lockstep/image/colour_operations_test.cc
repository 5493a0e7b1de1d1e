#include "lockstep/image/colour_operations.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "lockstep/image/testing/pictures.h"
#include "lockstep/image/testing/recorded.h"

namespace lockstep::image {
namespace {

using namespace testing_support;

TEST(ColourOperations, AreWithinOneOfWhatPillowRecorded) {
  Pixels copy;
  const std::map<std::string, std::function<void(Pixels&)>> operations = {
      {"brightness 0.6", [](Pixels& pixels) { change_brightness(pixels, 0.6); }},
      {"brightness 1.7", [](Pixels& pixels) { change_brightness(pixels, 1.7); }},
      {"contrast 0.6", [](Pixels& pixels) { change_contrast(pixels, 0.6); }},
      {"contrast 1.7", [](Pixels& pixels) { change_contrast(pixels, 1.7); }},
      {"saturation 0.6", [](Pixels& pixels) { change_saturation(pixels, 0.6); }},
      {"saturation 1.7", [](Pixels& pixels) { change_saturation(pixels, 1.7); }},
      {"sharpness 0.6", [&](Pixels& pixels) { change_sharpness(pixels, 0.6, copy); }},
      {"sharpness 1.7", [&](Pixels& pixels) { change_sharpness(pixels, 1.7, copy); }},
      {"posterize 3", [](Pixels& pixels) { posterize(pixels, 3); }},
      {"solarize 100", [](Pixels& pixels) { solarize(pixels, 100); }},
      {"autocontrast", autocontrast},
      {"equalize", equalize}};
  const auto all = recorded();
  EXPECT_EQ(all.at("colours").size(), operations.size());
  for (const auto& item : all.at("colours")) {
    const std::string name = item.at("name");
    const Size size{item.at("size")[0], item.at("size")[1]};
    Pixels pixels = recorded_picture(size, 3);
    for (int y = 0; y < size.height; ++y) {
      for (int x = 0; x < size.width; ++x) {
        for (int c = 0; c < 3; ++c) pixels.at(x, y)[c] = static_cast<uint8_t>(40 + pixels.at(x, y)[c] * 168 / 255);
      }
    }
    const Pixels original = slice(pixels, {0, 0, size.width, size.height});
    operations.at(name)(pixels);
    EXPECT_LE(difference(pixels, recorded_pixels(item.at("pixels"), size, 3)), 1) << name;
    EXPECT_GT(difference(pixels, original), 1) << name;
  }
}

TEST(ColourOperations, AFactorOfOneIsTheIdentity) {
  for (const int channels : {1, 3}) {
    Pixels pixels = picture({20, 15}, channels), copy;
    change_brightness(pixels, 1);
    change_contrast(pixels, 1);
    change_saturation(pixels, 1);
    change_sharpness(pixels, 1, copy);
    turn_hue(pixels, 0);
    posterize(pixels, 8);
    solarize(pixels, 256);
    EXPECT_EQ(difference(pixels, picture({20, 15}, channels)), 0);
  }
}

// A square of all colours whose levels are multiples of 5.
Pixels colours() {
  Pixels pixels;
  pixels.reshape({52 * 52, 52}, 3);
  for (int i = 0; i < 52 * 52 * 52; ++i) {
    uint8_t* const pixel = pixels.at(i % (52 * 52), i / (52 * 52));
    pixel[0] = static_cast<uint8_t>(i % 52 * 5);
    pixel[1] = static_cast<uint8_t>(i / 52 % 52 * 5);
    pixel[2] = static_cast<uint8_t>(i / (52 * 52) * 5);
  }
  return pixels;
}

TEST(TurnHue, IsExactAtThirdsOfTheCircle) {
  const Pixels original = colours();
  Pixels pixels = colours();
  turn_hue(pixels, 0);
  EXPECT_EQ(difference(pixels, original), 0);
  turn_hue(pixels, 1.0 / 3);  // red becomes green, green blue, blue red
  for (int y = 0; y < pixels.height(); ++y) {
    for (int x = 0; x < pixels.width(); ++x) {
      for (int c = 0; c < 3; ++c) ASSERT_EQ(pixels.at(x, y)[(c + 1) % 3], original.at(x, y)[c]) << x << ", " << y;
    }
  }
  turn_hue(pixels, 1.0 / 6);
  turn_hue(pixels, 0.5);
  EXPECT_LE(difference(pixels, original), 1);
}

TEST(ColourOperations, GreyImagesHaveNoColour) {
  Pixels pixels = picture({20, 15}, 1);
  turn_hue(pixels, 0.3);
  change_saturation(pixels, 3);
  EXPECT_EQ(difference(pixels, picture({20, 15}, 1)), 0);
  Pixels grey = flat({4, 4}, 3, 77);
  turn_hue(grey, 0.3);
  EXPECT_EQ(difference(grey, flat({4, 4}, 3, 77)), 0);
}

TEST(ColourOperations, AFlatImageStaysFlat) {
  Pixels pixels = flat({8, 8}, 3, 77);
  autocontrast(pixels);
  equalize(pixels);
  change_contrast(pixels, 3);
  EXPECT_EQ(difference(pixels, flat({8, 8}, 3, 77)), 0);
}

TEST(ColourOperations, LevelsStayInRange) {
  Pixels pixels = colours();
  change_brightness(pixels, 16);
  change_contrast(pixels, 16);
  change_saturation(pixels, 16);
  EXPECT_EQ(pixels.at(0, 0)[0], 0);
  EXPECT_EQ(pixels.at(pixels.width() - 1, pixels.height() - 1)[2], 255);
}

}  // namespace
}  // namespace lockstep::image
