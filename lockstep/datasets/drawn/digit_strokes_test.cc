#include "lockstep/datasets/drawn/digit_strokes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "lockstep/base/error.h"

namespace lockstep::datasets {
namespace {

TEST(DigitStrokes, AreWellFormed) {
  for (uint32_t digit = 0; digit < 10; ++digit) {
    ASSERT_FALSE(digit_glyphs(digit).empty()) << digit;
    for (const Glyph& glyph : digit_glyphs(digit)) {
      std::set<char> used;
      char previous = '|';
      for (const char letter : glyph.strokes) {
        if (letter != '|') {
          ASSERT_GE(letter, 'a') << digit;
          ASSERT_LT(letter - 'a', static_cast<int>(glyph.count)) << digit;
          used.insert(letter);
        }
        EXPECT_NE(letter, previous) << digit << ": an empty stroke, or a point twice";
        previous = letter;
      }
      EXPECT_NE(previous, '|') << digit;
      EXPECT_EQ(used.size(), glyph.count) << digit << ": a point that no stroke passes";
    }
  }
}

TEST(DigitStrokes, FillTheirBox) {
  for (uint32_t digit = 0; digit < 10; ++digit) {
    for (const Glyph& glyph : digit_glyphs(digit)) {
      float top = 1;
      float bottom = -1;
      for (size_t i = 0; i < glyph.count; ++i) {
        EXPECT_LE(std::abs(glyph.points[i].x), .65f) << digit;
        EXPECT_LE(std::abs(glyph.points[i].y), 1.f) << digit;
        top = std::min(top, glyph.points[i].y);
        bottom = std::max(bottom, glyph.points[i].y);
      }
      EXPECT_LE(top, -.85f) << digit;
      EXPECT_GE(bottom, .9f) << digit;
    }
  }
}

TEST(DigitStrokes, AreTen) { EXPECT_THROW(digit_glyphs(10), BugError); }

}  // namespace
}  // namespace lockstep::datasets
