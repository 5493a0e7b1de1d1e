// The parts of drawn images: shapes and textures in frames of their own. Plain float arithmetic without libm keeps the
// bits the same on every run of a build.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/base/philox.h"

namespace lockstep::datasets {

// A system of coordinates that is moved, turned and scaled on the canvas.
struct Frame {
  struct Coordinates {
    float u, v;
  };

  float x = 0, y = 0;          // its origin, in pixels from the top left
  float cosine = 1, sine = 0;  // of its angle
  float unit = 1;              // its unit of length, in pixels

  // A frame at a random angle of at most 90° either way.
  static Frame random_turn(RandomStream& random, float x, float y, float unit);

  // The coordinates of a point of the canvas, given in pixels from the top left.
  Coordinates of(float column, float row) const {
    const float right = (column - x) / unit, down = (row - y) / unit;
    return {cosine * right + sine * down, cosine * down - sine * right};
  }
};

enum class Shape : uint8_t { kDisc, kSquare, kTriangle, kCross, kRing };
constexpr int kShapes = 5;

// Whether the shape covers these coordinates of its frame. All shapes lie within [-1, 1]².
bool covers(Shape shape, Frame::Coordinates at);

struct Colour {
  float red, green, blue;  // 0 to 1

  static Colour random(RandomStream& random);
  // The colour that lies `share` of the way from this one to the other.
  Colour towards(const Colour& other, float share) const;
};

enum class Texture : uint8_t { kStripes, kChecks };
constexpr int kTextures = 2;

// A texture of two alternating colours, each one unit of its frame wide.
struct Paint {
  Texture texture;
  Frame frame;
  Colour first, second;

  const Colour& at(float column, float row) const;
};

// A square canvas of three planes (red, green, blue), each row by row from the top. Borrows its pixels.
class Canvas {
 public:
  Canvas(std::span<float> pixels, int side) : pixels_(pixels), side_(side) {}  // 3 · side² pixels
  int side() const { return side_; }

  void set(int column, int row, const Colour& colour);
  // Adds noise of up to ± `strength` to every value, and clamps it to 0 to 1.
  void add_noise(RandomStream& random, float strength);

 private:
  std::span<float> pixels_;
  int side_;
};

}  // namespace lockstep::datasets
