// A small grey canvas that strokes are drawn on, in plain float arithmetic: the same bits on every run of a build.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "lockstep/data/digit_strokes.h"

namespace lockstep::data {

class Ink {
 public:
  static constexpr int kSide = 28;
  static constexpr size_t kPixels = kSide * kSide;

  // Row by row from the top; 0 = empty, 1 = full ink.
  std::span<float, kPixels> pixels() { return pixels_; }
  std::span<const float, kPixels> pixels() const { return pixels_; }

  // A straight line, `radius` pixels to each side of its middle, with soft edges. The middle of pixel (column 0, row 0)
  // is the point (0, 0); what lies outside the canvas is left out. Lines that overlap do not add up.
  void line(Point from, Point to, float radius);

  // A smooth curve through the points (Catmull-Rom).
  void curve(std::span<const Point> points, float radius);

  // Empties the pixels of columns [left, left + width) and rows [top, top + height).
  void erase(int left, int top, int width, int height);

  // Mixes each pixel with its neighbours, which get `share` each of both directions' weight; 0 ≤ share ≤ 1/3.
  void blur(float share);

 private:
  std::array<float, kPixels> pixels_{};
};

}  // namespace lockstep::data
