#include "lockstep/datasets/drawn/drawing.h"

#include <algorithm>
#include <cmath>

namespace lockstep::datasets {
namespace {

float mix(float from, float to, float share) { return from + (to - from) * share; }

bool odd(float number) { return static_cast<int>(std::floor(number)) % 2 != 0; }

}  // namespace

Frame Frame::random_turn(RandomStream& random, float x, float y, float unit) {
  // Sine and cosine come from the tangent of half the angle, without libm, whose bits differ between versions.
  const float half = random.uniform(-1.f, 1.f);
  const float square = half * half;
  return {.x = x, .y = y, .cosine = (1 - square) / (1 + square), .sine = 2 * half / (1 + square), .unit = unit};
}

bool covers(Shape shape, Frame::Coordinates at) {
  const float right = std::fabs(at.u), down = std::fabs(at.v);
  const float square = at.u * at.u + at.v * at.v;
  switch (shape) {
    case Shape::kDisc:
      return square <= .8f;
    case Shape::kSquare:
      return std::max(right, down) <= .8f;
    case Shape::kTriangle:
      return at.v <= .7f && at.v >= 1.7f * right - 1;
    case Shape::kCross:
      return std::min(right, down) <= .3f && std::max(right, down) <= .95f;
    case Shape::kRing:
      return square >= .3f && square <= 1;
  }
  return false;
}

Colour Colour::random(RandomStream& random) {
  const float red = random.uniform(), green = random.uniform(), blue = random.uniform();
  return {red, green, blue};
}

Colour Colour::towards(const Colour& other, float share) const {
  return {mix(red, other.red, share), mix(green, other.green, share), mix(blue, other.blue, share)};
}

const Colour& Paint::at(float column, float row) const {
  const Frame::Coordinates local = frame.of(column, row);
  const bool turn = texture == Texture::kStripes ? odd(local.u) : odd(local.u) != odd(local.v);
  return turn ? second : first;
}

void Canvas::set(int column, int row, const Colour& colour) {
  const size_t plane = static_cast<size_t>(side_) * static_cast<size_t>(side_);
  float* const red = &pixels_[static_cast<size_t>(row) * static_cast<size_t>(side_) + static_cast<size_t>(column)];
  red[0] = colour.red;
  red[plane] = colour.green;
  red[2 * plane] = colour.blue;
}

// Each value takes one byte of the random bits.
void Canvas::add_noise(RandomStream& random, float strength) {
  uint32_t bits = 0;
  for (size_t i = 0; i < pixels_.size(); ++i) {
    bits = i % 4 == 0 ? random.bits() : bits >> 8;
    const float noise = strength * (static_cast<float>(bits & 255) / 127.5f - 1);
    pixels_[i] = std::min(1.f, std::max(0.f, pixels_[i] + noise));
  }
}

}  // namespace lockstep::datasets
