// The weights by which an axis of pixels is resized: Pillow's antialiased bilinear filter, rounded to 15 bits.
//
// An axis of `in` pixels becomes one of `out`. With scale = in / out and support = max(scale, 1), the pixel x of the
// result is at center = (x + 0.5) · scale, and the pixel i of the axis has the weight 1 - |i + 0.5 - center| / support
// where that is positive, divided by the sum of all. Weights are computed in the order of Pillow's additions.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::image {

// The pixels [first, last): of an axis, those that have weights; of its result, those that are wanted.
struct Taps {
  int first = 0, last = 0;
};
Taps taps_of(int in, int out, int x);

// The pixel that stands for x where none are mixed.
inline int nearest_of(int in, int out, int x) {
  return static_cast<int>((2 * int64_t{x} + 1) * in / (2 * int64_t{out}));
}

constexpr int kWeightBits = 15;  // weights add up to about 2^15
constexpr int kTapGroup = 4;     // weights are read in groups of so many

// The weights of the pixels [begin, begin + n) of the result.
struct Axis {
  int begin = 0;
  int taps = 0;                  // room for the weights of a pixel: whole groups, filled up with zeros
  std::vector<int> first;        // [n]: the first pixel that has a weight
  std::vector<int> count;        // [n]: how many have one, up to the last that is not 0
  std::vector<int16_t> weights;  // [n, taps], and room for a vector's reading beyond
};
Axis make_axis(int in, int out, Taps wanted);
inline Axis make_axis(int in, int out) { return make_axis(in, out, {0, out}); }

}  // namespace lockstep::image
