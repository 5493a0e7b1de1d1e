#include "lockstep/datasets/drawn/ink.h"

#include <gtest/gtest.h>

#include <numeric>

namespace lockstep::datasets {
namespace {

float at(const Ink& ink, int column, int row) { return ink.pixels()[static_cast<size_t>(row * Ink::kSide + column)]; }

float total(const Ink& ink) { return std::accumulate(ink.pixels().begin(), ink.pixels().end(), 0.f); }

TEST(Ink, DrawsALineOfItsRadius) {
  Ink ink;
  ink.line({5, 10}, {20, 10}, 1.5f);
  for (int column = 5; column <= 20; ++column) {
    EXPECT_EQ(at(ink, column, 10), 1);
    EXPECT_EQ(at(ink, column, 9), 1);
    EXPECT_EQ(at(ink, column, 12), 0);
  }
  EXPECT_EQ(at(ink, 2, 10), 0);
  EXPECT_EQ(at(ink, 4, 10), 1);
  EXPECT_EQ(at(ink, 23, 10), 0);
}

TEST(Ink, SoftensEdges) {
  Ink ink;
  ink.line({5, 10.5f}, {20, 10.5f}, .6f);
  EXPECT_GT(at(ink, 10, 10), 0);
  EXPECT_LT(at(ink, 10, 10), 1);
  EXPECT_EQ(at(ink, 10, 10), at(ink, 10, 11));
}

TEST(Ink, DoesNotAddUpAndLeavesOutWhatIsOutside) {
  Ink once;
  once.line({-30, -30}, {60, 60}, 1);
  Ink twice = once;
  twice.line({-30, -30}, {60, 60}, 1);
  EXPECT_EQ(total(once), total(twice));
  EXPECT_EQ(at(once, 0, 0), 1);
  EXPECT_EQ(at(once, 27, 27), 1);
  Ink none;
  none.line({-300, 5}, {-3, 5}, 1);
  none.line({40, 5}, {300, 5}, 1);
  none.line({5, 1e9f}, {6, 1e9f}, 1);
  EXPECT_EQ(total(none), 0);
}

TEST(Ink, DrawsAPoint) {
  Ink ink;
  ink.line({7, 8}, {7, 8}, 1);
  EXPECT_EQ(at(ink, 7, 8), 1);
  EXPECT_EQ(at(ink, 9, 8), 0);
}

TEST(Ink, CurvesPassThroughTheirPoints) {
  const std::array<Point, 4> points = {Point{5, 5}, Point{20, 6}, Point{21, 20}, Point{6, 22}};
  Ink ink;
  ink.curve(points, 1);
  for (const Point& p : points) EXPECT_EQ(at(ink, static_cast<int>(p.x), static_cast<int>(p.y)), 1);
  EXPECT_EQ(at(ink, 12, 13), 0);
}

TEST(Ink, ErasesARectangle) {
  Ink ink;
  ink.line({0, 10}, {27, 10}, 1);
  ink.erase(20, 8, 40, 5);
  EXPECT_EQ(at(ink, 19, 10), 1);
  EXPECT_EQ(at(ink, 20, 10), 0);
  EXPECT_EQ(at(ink, 27, 10), 0);
}

TEST(Ink, BlursWithoutLosingInk) {
  Ink ink;
  ink.line({10, 10}, {15, 15}, 1);
  const float before = total(ink);
  ink.blur(.2f);
  EXPECT_NEAR(total(ink), before, 1e-3);
  Ink dot;
  dot.line({7, 8}, {7, 8}, .2f);
  const float middle = at(dot, 7, 8);
  dot.blur(.25f);
  EXPECT_FLOAT_EQ(at(dot, 7, 8), middle / 4);
  EXPECT_FLOAT_EQ(at(dot, 6, 8), middle / 8);
  EXPECT_FLOAT_EQ(at(dot, 6, 7), middle / 16);
}

}  // namespace
}  // namespace lockstep::datasets
