// What made images are drawn of: shapes and textures in frames of their own, in plain float arithmetic without libm, so
// that the bits are the same on every run of a build.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/base/philox.h"

namespace lockstep::data {

// Coordinates of a frame that lies moved, turned and scaled on the canvas.
struct Frame {
  struct Place {
    float u, v;
  };

  float x = 0, y = 0;          // its middle, pixels from the top left
  float cosine = 1, sine = 0;  // of its turn
  float unit = 1;              // its unit of length, pixels

  // Turned by less than a quarter, either way.
  static Frame random_turn(RandomStream& random, float x, float y, float unit);

  Place of(float column, float row) const {
    const float right = (column - x) / unit, down = (row - y) / unit;
    return {cosine * right + sine * down, cosine * down - sine * right};
  }
};

enum class Shape : uint8_t { kDisc, kSquare, kTriangle, kCross, kRing };
constexpr int kShapes = 5;

// Whether the shape covers this place of its frame; all shapes lie within [-1, 1]².
bool covers(Shape shape, Frame::Place at);

struct Colour {
  float red, green, blue;  // 0 to 1

  static Colour random(RandomStream& random);
  // `share` of the way from this one to the other.
  Colour towards(const Colour& other, float share) const;
};

enum class Texture : uint8_t { kStripes, kChecks };
constexpr int kTextures = 2;

// Two colours in turn, a frame's unit wide each.
struct Paint {
  Texture texture;
  Frame frame;
  Colour first, second;

  const Colour& at(float column, float row) const;
};

// A square canvas of three planes, red, green and blue, each row by row from the top; borrows its pixels.
class Canvas {
 public:
  Canvas(std::span<float> pixels, int side) : pixels_(pixels), side_(side) {}  // 3 · side² of them
  int side() const { return side_; }

  void set(int column, int row, const Colour& colour);
  // Adds up to ± `strength` to every value, and keeps it within 0 to 1.
  void add_noise(RandomStream& random, float strength);

 private:
  std::span<float> pixels_;
  int side_;
};

}  // namespace lockstep::data
