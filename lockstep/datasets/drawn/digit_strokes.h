// The skeletons of the ten digits: points joined by strokes, as hands write them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep::datasets {

struct Point {
  float x = 0;  // to the right
  float y = 0;  // downwards
};

constexpr size_t kMostPoints = 12;

// One way to write a digit, within about [-0.65, 0.65] × [-1, 1].
struct Glyph {
  std::array<Point, kMostPoints> points;
  size_t count;
  // The strokes, separated by '|'. Each letter is a point, 'a' the first; a stroke is a smooth curve through its
  // points.
  std::string_view strokes;
};

// The ways to write a digit, at least one; 0 ≤ digit ≤ 9.
std::span<const Glyph> digit_glyphs(uint32_t digit);

}  // namespace lockstep::datasets
