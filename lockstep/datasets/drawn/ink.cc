#include "lockstep/datasets/drawn/ink.h"

#include <algorithm>
#include <cmath>

namespace lockstep::datasets {
namespace {

constexpr int kPiecesPerSpan = 4;

// The point at t in [0, 1] between b and c on the curve through a, b, c and d.
Point catmull_rom(Point a, Point b, Point c, Point d, float t) {
  const auto one = [t](float p, float q, float r, float s) {
    return q + .5f * t * (r - p + t * (2 * p - 5 * q + 4 * r - s + t * (3 * (q - r) + s - p)));
  };
  return {one(a.x, b.x, c.x, d.x), one(a.y, b.y, c.y, d.y)};
}

// The pixels that a line from `a` to `b` with this reach can touch along one axis: [first, last].
struct Reach {
  int first;
  int last;
};
Reach reach(float a, float b, float outer) {
  const float low = std::clamp(std::min(a, b) - outer, 0.f, static_cast<float>(Ink::kSide));
  const float high = std::clamp(std::max(a, b) + outer, -1.f, static_cast<float>(Ink::kSide - 1));
  return {static_cast<int>(std::ceil(low)), static_cast<int>(std::floor(high))};
}

}  // namespace

// A pixel's ink falls from full to nothing between the distances radius - 1/2 and radius + 1/2, linearly in the squared
// distance, which saves the square root.
void Ink::line(Point from, Point to, float radius) {
  const float outer = radius + .5f;
  const float inner = std::max(0.f, radius - .5f);
  const float slope = 1 / (outer * outer - inner * inner);
  const Reach columns = reach(from.x, to.x, outer);
  const Reach rows = reach(from.y, to.y, outer);
  const float dx = to.x - from.x;
  const float dy = to.y - from.y;
  const float length2 = dx * dx + dy * dy;
  const float inverse = length2 > 0 ? 1 / length2 : 0;
  for (int row = rows.first; row <= rows.last; ++row) {
    float* pixel = &pixels_[static_cast<size_t>(row * kSide)];
    const float y = static_cast<float>(row) - from.y;
    for (int column = columns.first; column <= columns.last; ++column) {
      const float x = static_cast<float>(column) - from.x;
      const float along = std::min(1.f, std::max(0.f, (x * dx + y * dy) * inverse));
      const float off_x = x - along * dx;
      const float off_y = y - along * dy;
      const float ink = (outer * outer - off_x * off_x - off_y * off_y) * slope;
      pixel[column] = std::max(pixel[column], std::min(1.f, ink));
    }
  }
}

void Ink::curve(std::span<const Point> points, float radius) {
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    if (points.size() == 2) return line(points[0], points[1], radius);
    const Point before = points[i == 0 ? 0 : i - 1];
    const Point after = points[std::min(i + 2, points.size() - 1)];
    Point from = points[i];
    for (int piece = 1; piece <= kPiecesPerSpan; ++piece) {
      const Point to = catmull_rom(before, points[i], points[i + 1], after, static_cast<float>(piece) / kPiecesPerSpan);
      line(from, to, radius);
      from = to;
    }
  }
}

void Ink::erase(int left, int top, int width, int height) {
  for (int row = std::max(0, top); row < std::min(kSide, top + height); ++row) {
    for (int column = std::max(0, left); column < std::min(kSide, left + width); ++column) {
      pixels_[static_cast<size_t>(row * kSide + column)] = 0;
    }
  }
}

void Ink::blur(float share) {
  const float own = 1 - 2 * share;
  std::array<float, kPixels + 2 * kSide> rows{};  // one empty row above and one below
  for (size_t row = 0; row < kSide; ++row) {
    const float* from = &pixels_[row * kSide];
    float* to = &rows[(row + 1) * kSide];
    to[0] = own * from[0] + share * from[1];
    for (size_t i = 1; i + 1 < kSide; ++i) to[i] = own * from[i] + share * (from[i - 1] + from[i + 1]);
    to[kSide - 1] = own * from[kSide - 1] + share * from[kSide - 2];
  }
  for (size_t i = 0; i < kPixels; ++i) {
    pixels_[i] = own * rows[i + kSide] + share * (rows[i] + rows[i + 2 * kSide]);
  }
}

}  // namespace lockstep::datasets
