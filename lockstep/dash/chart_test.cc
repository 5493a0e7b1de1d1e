#include "lockstep/dash/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>

namespace lockstep::dash {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Curve curve_of(int64_t count, const auto& value) {
  Curve curve;
  for (int64_t step = 1; step <= count; ++step) {
    curve.steps.push_back(step);
    curve.values.push_back(value(step));
  }
  return curve;
}

int64_t count_of(const std::string& text, const std::string& what) {
  int64_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// The points of a polyline, across and down.
std::vector<std::pair<double, double>> points_of(const std::string& picture, const std::string& kind = "polyline") {
  std::smatch found;
  std::vector<std::pair<double, double>> points;
  if (!std::regex_search(picture, found, std::regex("<" + kind + " points='([^']*)'"))) return points;
  const std::string text = found[1];
  const std::regex pair("([0-9.]+),([0-9.]+)");
  for (std::sregex_iterator each(text.begin(), text.end(), pair), end; each != end; ++each) {
    points.emplace_back(std::stod((*each)[1]), std::stod((*each)[2]));
  }
  return points;
}

TEST(RoundMarks, AreOnesTwosAndFives) {
  EXPECT_THAT(round_marks(0, 1, 5), ElementsAre(0, DoubleEq(0.2), DoubleEq(0.4), DoubleEq(0.6), DoubleEq(0.8), 1));
  EXPECT_THAT(round_marks(130, 990, 5), ElementsAre(200, 400, 600, 800));
  EXPECT_THAT(round_marks(3, 3, 5), ElementsAre(3));
}

TEST(ShortNumber, HasFourDigits) {
  EXPECT_EQ(short_number(0.30734), "0.3073");
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(915), "915");
  EXPECT_EQ(short_number(61'234), "61.23k");
  EXPECT_EQ(short_number(2.5e6), "2.5M");
  EXPECT_EQ(short_number(1.2e-5), "1.2e-05");
  EXPECT_EQ(short_number(-4), "-4");
}

TEST(Svg, HasAxesUnitsAndALegend) {
  const Curve loss = curve_of(100, [](int64_t step) { return 10.0 / static_cast<double>(step); });
  const std::string picture = svg({.title = "Speed", .unit = "samples/s", .lines = {{"training", &loss}}});
  EXPECT_THAT(picture, HasSubstr("<figcaption>Speed</figcaption>"));
  EXPECT_THAT(picture, HasSubstr(">samples/s</text>"));
  EXPECT_THAT(picture, HasSubstr(">step</text>"));
  EXPECT_THAT(picture, HasSubstr("training <b>0.1</b>"));
  EXPECT_EQ(points_of(picture).size(), 100U);
}

TEST(Svg, GreaterValuesAreHigherAndLaterStepsFurtherRight) {
  const Curve rising = curve_of(3, [](int64_t step) { return static_cast<double>(step); });
  const auto points = points_of(svg({.title = "", .lines = {{"", &rising}}}));
  ASSERT_EQ(points.size(), 3U);
  EXPECT_LT(points[0].first, points[1].first);
  EXPECT_GT(points[0].second, points[1].second);
  EXPECT_NEAR(points[1].second, (points[0].second + points[2].second) / 2, 0.11);
}

TEST(Svg, OnALogarithmicAxisFactorsAreDistances) {
  const Curve decades = curve_of(3, [](int64_t step) { return std::pow(10.0, static_cast<double>(step)); });
  const std::string picture = svg({.title = "", .lines = {{"", &decades}}, .log = true});
  const auto points = points_of(picture);
  ASSERT_EQ(points.size(), 3U);
  EXPECT_NEAR(points[1].second, (points[0].second + points[2].second) / 2, 0.11);
  EXPECT_THAT(picture, HasSubstr("logarithmic"));
}

TEST(Svg, AValueThatIsNotAboveZeroHasNoLogarithm) {
  const Curve zero = curve_of(3, [](int64_t step) { return static_cast<double>(step - 1); });
  EXPECT_THAT(svg({.title = "", .lines = {{"", &zero}}, .log = true}), Not(HasSubstr("logarithmic")));
}

TEST(Svg, OfManyValuesMeanLeastAndGreatestOfAColumnAreDrawn) {
  const Curve many = curve_of(100'000, [](int64_t step) { return step == 50'000 ? 9.0 : step % 2 == 0 ? 1.0 : 3.0; });
  const std::string picture = svg({.title = "", .lines = {{"", &many}}});
  EXPECT_LT(picture.size(), 20'000U);
  const auto line = points_of(picture), area = points_of(picture, "polygon");
  EXPECT_EQ(line.size(), 240U);
  EXPECT_EQ(area.size(), 480U);
  const auto top = [](const auto& points) {
    return std::min_element(points.begin(), points.end(), [](auto a, auto b) { return a.second < b.second; })->second;
  };
  EXPECT_LT(top(area), top(line) - 50);  // the one value of 9 is in sight
}

TEST(Svg, FewValuesAreMarked) {
  const Curve few = curve_of(4, [](int64_t) { return 0.5; });
  const std::string marked = svg({.title = "", .lines = {{"test", &few, /*points=*/true}}});
  EXPECT_EQ(count_of(marked, "<circle"), 4);
  EXPECT_THAT(marked, HasSubstr("<title>test 0.5, step 1</title>"));
  EXPECT_EQ(count_of(svg({.title = "", .lines = {{"test", &few}}}), "<circle"), 0);
}

TEST(Svg, OneValueIsSeen) {
  const Curve one = curve_of(1, [](int64_t) { return 7.0; });
  const std::string picture = svg({.title = "", .lines = {{"", &one}}});
  EXPECT_EQ(count_of(picture, "<circle"), 1);
  EXPECT_THAT(picture, Not(HasSubstr("nan")));
}

TEST(Svg, ExtremesAreDrawn) {
  for (const double value : {0.0, -1e300, 1e300, 1e-300}) {
    const Curve flat = curve_of(2, [value](int64_t) { return value; });
    for (const bool log : {false, true}) {
      const std::string picture = svg({.title = "", .lines = {{"", &flat}}, .log = log});
      EXPECT_EQ(points_of(picture).size(), 2U) << value;
      EXPECT_THAT(picture, Not(HasSubstr("nan"))) << value;
    }
  }
}

// Two evaluations may differ by a last bit.
TEST(Svg, ValuesThatDifferByRoundingAreDrawn) {
  for (const double value : {1.0, 0.99, 0.001, 1e-300, 1e300, -7.0}) {
    const Curve near =
        curve_of(3, [value](int64_t step) { return step == 2 ? std::nextafter(value, 2 * value) : value; });
    for (const bool log : {false, true}) {
      const std::string picture = svg({.title = "", .lines = {{"", &near}}, .log = log});
      EXPECT_EQ(points_of(picture).size(), 3U) << value;
      EXPECT_LT(picture.size(), 10'000U) << value;
    }
  }
}

TEST(Svg, AllNumbersAreDrawn) {
  const Curve all = curve_of(4, [](int64_t step) {
    return std::array{5e-324, 1.0, 1e-300, 1.7e308}[size_t(step - 1)];
  });
  const Curve both = curve_of(2, [](int64_t step) { return step == 1 ? -1.7e308 : 1.7e308; });
  for (const Curve* curve : {&all, &both}) {
    for (const bool log : {false, true})
      EXPECT_LT(svg({.title = "", .lines = {{"", curve}}, .log = log}).size(), 10'000U);
  }
}

TEST(Svg, NothingIsNoPicture) {
  const Curve empty;
  EXPECT_THAT(svg({.title = "a"}), IsEmpty());
  EXPECT_THAT(svg({.title = "a", .lines = {{"", &empty}}}), IsEmpty());
}

TEST(Svg, NamesAreEscaped) {
  const Curve one = curve_of(1, [](int64_t) { return 1.0; });
  const std::string picture = svg({.title = "<script>", .lines = {{"a'b", &one}}});
  EXPECT_THAT(picture, Not(HasSubstr("<script>")));
  EXPECT_THAT(picture, Not(HasSubstr("a'b")));
}

TEST(Svg, WhatWasNotFiniteIsSaid) {
  Curve loss = curve_of(2, [](int64_t) { return 1.0; });
  loss.not_finite = 3;
  EXPECT_THAT(svg({.title = "", .lines = {{"", &loss}}}), HasSubstr("(3 not finite)"));
}

}  // namespace
}  // namespace lockstep::dash
