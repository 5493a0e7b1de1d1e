#include "lockstep/image/resize.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/instruction_sets.h"
#include "lockstep/image/testing/pictures.h"
#include "lockstep/image/testing/pillow.h"
#include "lockstep/image/testing/recorded.h"

namespace lockstep::image {
namespace {

using namespace testing_support;
using lockstep::testing_support::with_each_instruction_set;

Pixels resized_by(Resizer& resizer, const Pixels& in, const Geometry& geometry, Filter filter = Filter::kBilinear) {
  Pixels out;
  resizer.resize(in, {0, 0, in.width(), in.height()}, geometry, filter, out);
  return out;
}

Pixels resized_to(const Pixels& in, Size to) {
  Resizer resizer;
  return resized_by(resizer, in, *resized(whole(in.size()), to));
}

// The values that differ, and by how much at most.
struct Deviation {
  int64_t values = 0, differ = 0;
  int most = 0;
};
void compare(const Pixels& a, const Pixels& b, Deviation& deviation) {
  for (int y = 0; y < a.height(); ++y) {
    for (int x = 0; x < a.width(); ++x) {
      for (int c = 0; c < a.channels(); ++c) {
        const int difference = std::abs(a.at(x, y)[c] - b.at(x, y)[c]);
        ++deviation.values;
        deviation.differ += difference != 0;
        deviation.most = std::max(deviation.most, difference);
      }
    }
  }
}

TEST(Resize, IsWithinOneOfPillowsAlgorithm) {
  Deviation deviation;
  const std::pair<Size, Size> cases[] = {{{500, 375}, {224, 224}}, {{237, 301}, {224, 224}}, {{60, 41}, {224, 224}},
                                         {{224, 300}, {224, 224}}, {{300, 224}, {224, 224}}, {{1600, 90}, {33, 65}},
                                         {{1, 1}, {5, 4}},         {{3, 700}, {2, 1}}};
  for (const auto& [from, to] : cases) {
    for (const int channels : {1, 3}) {
      const Pixels in = picture(from, channels);
      const Pixels ours = resized_to(in, to);
      ASSERT_EQ(ours.size(), to);
      compare(ours, pillow_resize(in, to), deviation);
    }
  }
  EXPECT_LE(deviation.most, 1);
  EXPECT_LT(static_cast<double>(deviation.differ), 0.004 * static_cast<double>(deviation.values));
}

TEST(Resize, IsWithinOneOfWhatPillowRecorded) {
  const auto all = recorded();
  for (const auto& item : all.at("resizes")) {
    const int channels = item.at("channels");
    const Pixels in = recorded_picture({item.at("size")[0], item.at("size")[1]}, channels);
    const Pixels expected = recorded_pixels(item.at("pixels"), {item.at("to")[0], item.at("to")[1]}, channels);
    EXPECT_EQ(difference(pillow_resize(in, expected.size()), expected), 0);
    EXPECT_LE(difference(resized_to(in, expected.size()), expected), 1);
  }
}

TEST(Resize, FlatStaysFlat) {
  for (int value = 0; value < 256; ++value) {
    for (const Size from : {Size{20, 33}, Size{333, 20}, Size{2000, 3}}) {
      const Pixels in = flat(from, 3, static_cast<uint8_t>(value));
      ASSERT_EQ(difference(resized_to(in, {64, 48}), flat({64, 48}, 3, static_cast<uint8_t>(value))), 0) << value;
    }
  }
}

TEST(Resize, AnExtremeSizeKeepsItsMean) {
  const Pixels out = resized_to(flat({100000, 4}, 3, 200), {1, 1});
  EXPECT_EQ(out.at(0, 0)[0], 200);
  EXPECT_NEAR(resized_to(picture({100000, 4}), {1, 1}).at(0, 0)[1], 134, 10);
}

TEST(Resize, EveryInstructionSetGivesTheSameBits) {
  uint64_t expected = 0;
  with_each_instruction_set([&] {
    uint64_t hash = kFnvSeed;
    Resizer resizer;
    for (const int channels : {1, 3}) {
      for (const Size from : {Size{101, 57}, Size{13, 90}}) {
        const Pixels out = resized_by(resizer, picture(from, channels), flipped_x(*resized(whole(from), {37, 41})));
        hash = hash_of(out, hash);
      }
    }
    if (expected == 0) expected = hash;
    EXPECT_EQ(hash, expected);
  });
  EXPECT_EQ(expected, 2113978539036954123u);
}

// Any window, flips, and only what is needed of the image at hand.
TEST(Resize, AWindowIsASliceOfTheWhole) {
  RandomStream random(1, Purpose::kSynthetic, 0, 0);
  Resizer resizer;
  const Size sizes[] = {{37, 29}, {80, 29}, {37, 90}, {80, 60}, {150, 101}};
  for (int i = 0; i < 400; ++i) {
    const int channels = i % 2 == 0 ? 3 : 1;
    const Filter filter = i % 3 == 0 ? Filter::kNearest : Filter::kBilinear;
    const Pixels in = picture({80, 60}, channels);
    const Geometry all = *resized(whole(in.size()), sizes[random.below(5)]);
    Geometry part = *cropped(all, random_rect(random, all.resized));
    if (random.below(2) == 0) part = flipped_x(part);
    if (random.below(2) == 0) part = flipped_y(part);
    const Rect held = needed(part, filter);
    Pixels out;
    resizer.resize(slice(in, held), held, part, filter, out);
    const Pixels expected = slice(resized_by(resizer, in, all, filter), part.window);
    Pixels turned;
    turned.reshape(expected.size(), channels);
    for (int y = 0; y < turned.height(); ++y) {
      for (int x = 0; x < turned.width(); ++x) {
        const uint8_t* from =
            expected.at(part.flip_x ? turned.width() - 1 - x : x, part.flip_y ? turned.height() - 1 - y : y);
        for (int c = 0; c < channels; ++c) turned.at(x, y)[c] = from[c];
      }
    }
    ASSERT_EQ(difference(out, turned), 0) << i;
  }
}

// Of a long axis only the window has weights: those of the whole one would take a quarter of a gigabyte.
TEST(Resize, AWindowOfALongThinImageIsItsMiddle) {
  Resizer resizer;
  const Pixels in = picture({1, 65000});
  const Geometry all = *resized(whole(in.size()), {256, 16640000});
  const Geometry part = *cropped(all, {16, 8319888, 224, 224});
  const Pixels out = resized_by(resizer, in, part);
  EXPECT_EQ(difference(slice(out, {0, 112, 1, 1}), slice(out, {223, 112, 1, 1})), 0);
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(out.at(7, 112)[c], (in.at(0, 32499)[c] + in.at(0, 32500)[c]) / 2.0, 1.5);
  EXPECT_THROW(resized_by(resizer, in, all), DataError);
}

TEST(Resize, WhatLiesBeyondIsFilled) {
  Resizer resizer;
  const Pixels in = flat({10, 8}, 3, 50);
  const Geometry padded = *cropped(whole(in.size()), {-3, -1, 15, 12}, 7);
  for (const bool flip : {false, true}) {
    const Pixels out = resized_by(resizer, in, flip ? flipped_x(padded) : padded);
    ASSERT_EQ(out.size(), (Size{15, 12}));
    for (int y = 0; y < 12; ++y) {
      for (int x = 0; x < 15; ++x) {
        const int column = (flip ? 14 - x : x) - 3, row = y - 1;
        const bool within = column >= 0 && column < 10 && row >= 0 && row < 8;
        ASSERT_EQ(out.at(x, y)[1], within ? 50 : 7) << x << ", " << y;
      }
    }
  }
  const Pixels nothing = resized_by(resizer, in, *cropped(whole(in.size()), {20, 20, 4, 4}, 7));
  EXPECT_EQ(difference(nothing, flat({4, 4}, 3, 7)), 0);
}

}  // namespace
}  // namespace lockstep::image
