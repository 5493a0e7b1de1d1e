// A small grey canvas for strokes. Plain float arithmetic keeps the bits the same on every run of a build.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "lockstep/datasets/drawn/digit_strokes.h"

namespace lockstep::datasets {

class Ink {
 public:
  static constexpr int kSide = 28;
  static constexpr size_t kPixels = kSide * kSide;

  // Row by row from the top; 0 = empty, 1 = full ink.
  std::span<float, kPixels> pixels() { return pixels_; }
  std::span<const float, kPixels> pixels() const { return pixels_; }

  // Draws a straight line that reaches `radius` pixels to each side of its middle, with soft edges. The point (0, 0) is
  // the middle of pixel (column 0, row 0). Parts outside the canvas are cut off. Lines that overlap do not add up.
  void line(Point from, Point to, float radius);

  // Draws a smooth curve through the points (Catmull-Rom).
  void curve(std::span<const Point> points, float radius);

  // Empties the pixels of columns [left, left + width) and rows [top, top + height).
  void erase(int left, int top, int width, int height);

  // Mixes each pixel with its neighbours along columns and along rows: in each direction both neighbours get the weight
  // `share`, 0 ≤ share ≤ 1/3.
  void blur(float share);

 private:
  std::array<float, kPixels> pixels_{};
};

}  // namespace lockstep::datasets
