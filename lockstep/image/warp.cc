#include "lockstep/image/warp.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "lockstep/base/exact_math.h"

namespace lockstep::image {
namespace {

// Places count 2^-32 of a pixel. An upright map then hits pixels exactly.
constexpr int kPlaceBits = 32;
int64_t fixed(double place) { return std::llround(place * 0x1p32); }

struct Place {
  int64_t x, y;
};

int clamped(int64_t at, int size) { return static_cast<int>(std::clamp<int64_t>(at, 0, size - 1)); }

// The four pixels about a place, with weights of 8 bits an axis.
template <int kStep>
void mix(const Pixels& in, Place place, uint8_t* to) {
  const int64_t x = place.x - (int64_t{1} << (kPlaceBits - 1)), y = place.y - (int64_t{1} << (kPlaceBits - 1));
  const int left = clamped(x >> kPlaceBits, in.width()), right = clamped((x >> kPlaceBits) + 1, in.width());
  const int top = clamped(y >> kPlaceBits, in.height()), bottom = clamped((y >> kPlaceBits) + 1, in.height());
  const auto across = static_cast<int>(x >> (kPlaceBits - 8) & 255),
             down = static_cast<int>(y >> (kPlaceBits - 8) & 255);
  const uint8_t *const upper = in.row(top), *const lower = in.row(bottom);
  for (int c = 0; c < kStep; ++c) {
    const int above = upper[left * kStep + c] * (256 - across) + upper[right * kStep + c] * across;
    const int below = lower[left * kStep + c] * (256 - across) + lower[right * kStep + c] * across;
    to[c] = static_cast<uint8_t>((above * (256 - down) + below * down + (1 << 15)) >> 16);
  }
}

template <int kStep>
void warp_pixels(const Pixels& in, const AffineMap& map, Filter filter, uint8_t fill, Pixels& out) {
  const int64_t width = in.width(), height = in.height();
  const Place step{fixed(map.x_x), fixed(map.y_x)};
  for (int y = 0; y < out.height(); ++y) {
    const double row = y + 0.5;
    Place place{fixed(map.x_x * 0.5 + map.x_y * row + map.x_0), fixed(map.y_x * 0.5 + map.y_y * row + map.y_0)};
    uint8_t* to = out.row(y);
    for (int x = 0; x < out.width(); ++x, to += kStep, place.x += step.x, place.y += step.y) {
      const int64_t column = place.x >> kPlaceBits, line = place.y >> kPlaceBits;
      if (column < 0 || column >= width || line < 0 || line >= height) {
        std::memset(to, fill, kStep);
      } else if (filter == Filter::kNearest) {
        std::memcpy(to, in.at(static_cast<int>(column), static_cast<int>(line)), kStep);
      } else {
        mix<kStep>(in, place, to);
      }
    }
  }
}

}  // namespace

// The inverse of: shear, turn, enlarge about the center, move.
AffineMap affine_map(Size image, const AffineParameters& parameters) {
  const double radian = std::numbers::pi / 180;
  const SineCosine turn = exact_sine_cosine(parameters.degrees * radian);
  const SineCosine shear = exact_sine_cosine(parameters.shear * radian);
  const double slope = shear.sine / shear.cosine, scale = parameters.scale;
  AffineMap map;
  map.x_x = (turn.cosine - turn.sine * slope) / scale;
  map.x_y = (turn.sine + turn.cosine * slope) / scale;
  map.y_x = -turn.sine / scale;
  map.y_y = turn.cosine / scale;
  const double x = image.width * 0.5, y = image.height * 0.5;
  map.x_0 = x - map.x_x * (x + parameters.translate_x) - map.x_y * (y + parameters.translate_y);
  map.y_0 = y - map.y_x * (x + parameters.translate_x) - map.y_y * (y + parameters.translate_y);
  return map;
}

void warp(const Pixels& in, const AffineMap& map, Filter filter, uint8_t fill, Pixels& out) {
  out.reshape(in.size(), in.channels());
  in.channels() == 1 ? warp_pixels<1>(in, map, filter, fill, out) : warp_pixels<4>(in, map, filter, fill, out);
}

void warp(Sample& sample, const AffineMap& map, uint8_t fill, Scratch& scratch) {
  warp(sample.image, map, Filter::kBilinear, fill, scratch.image);
  std::swap(sample.image, scratch.image);
  if (sample.mask.empty()) return;
  warp(sample.mask, map, Filter::kNearest, 0, scratch.mask);
  std::swap(sample.mask, scratch.mask);
}

}  // namespace lockstep::image
