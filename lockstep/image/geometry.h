// The part of an image that becomes the result, and how: crop, resize, window, flips, in this order. It is planned
// before the image is decoded, so that nothing is decoded in vain.
#pragma once

#include <optional>

#include "lockstep/image/pixels.h"

namespace lockstep::image {

// How pixels are resized: kBilinear as Pillow does it, over as many pixels as one of the result covers; kNearest takes
// one, for class numbers.
enum class Filter : uint8_t { kBilinear, kNearest };

constexpr int kMostSide = 1 << 24;  // pixels: of an image, and of its resized form

struct Geometry {
  Size image;                           // upright
  Rect source;                          // the part that is resized, within the image; the filter doesn't look beyond it
  Size resized;                         // its size then
  Rect window;                          // the part of that which is the result; what lies beyond it is filled
  bool flip_x = false, flip_y = false;  // of the result
  uint8_t fill = 0;

  Size result() const { return window.size(); }
  bool operator==(const Geometry&) const = default;
};

// The geometry of an image that stays as it is.
Geometry whole(Size image);

// A part of the result, which may reach beyond it: the rest is filled with `fill`.
std::optional<Geometry> cropped(const Geometry& before, const Rect& of_result, uint8_t fill = 0);

// The result in another size. Nothing if it was resized or filled before.
std::optional<Geometry> resized(const Geometry& before, Size to);

Geometry flipped_x(const Geometry& before);  // left and right change places
Geometry flipped_y(const Geometry& before);

// The rectangle of the image on which the result depends, not empty: what has to be decoded.
Rect needed(const Geometry& geometry, Filter filter);

}  // namespace lockstep::image
