#include "lockstep/image/orientation.h"

#include <cstddef>

namespace lockstep::image {
namespace {

// The stored place of an upright one: from (x, y), a step along the upright row is (x_right, y_right), and one down an
// upright column is (x_down, y_down). One table says it all: 2 mirrors, 3 turns by 180 degrees, 4 flips, 5 transposes,
// 6 turns to the right, 7 transposes at the other diagonal, 8 turns to the left.
struct Walk {
  int x_right, y_right, x_down, y_down;
};
constexpr Walk kWalks[] = {{1, 0, 0, 1}, {-1, 0, 0, 1}, {-1, 0, 0, -1}, {1, 0, 0, -1},
                           {0, 1, 1, 0}, {0, -1, 1, 0}, {0, -1, -1, 0}, {0, 1, -1, 0}};

Walk walk_of(int orientation) { return kWalks[orientation - 1]; }

// The stored place of the upright pixel (0, 0).
struct Place {
  int x, y;
};
Place begin_of(Size stored, const Walk& walk) {
  return {walk.x_right + walk.x_down < 0 ? stored.width - 1 : 0,
          walk.y_right + walk.y_down < 0 ? stored.height - 1 : 0};
}

template <typename T>
void copy_turned(const T* from, ptrdiff_t right, ptrdiff_t down, Size size, T* to, ptrdiff_t stride) {
  for (int y = 0; y < size.height; ++y, from += down, to += stride) {
    const T* pixel = from;
    for (int x = 0; x < size.width; ++x, pixel += right) to[x] = *pixel;
  }
}

template <typename T>
void turn_pixels(const Pixels& from, const Rect& part, const Walk& walk, Pixels& to) {
  constexpr ptrdiff_t kStep = sizeof(T);
  const ptrdiff_t stride = from.stride() / kStep;
  const Place begin = begin_of(part.size(), walk);
  copy_turned(reinterpret_cast<const T*>(from.at(part.x + begin.x, part.y + begin.y)),
              walk.x_right + walk.y_right * stride, walk.x_down + walk.y_down * stride, to.size(),
              reinterpret_cast<T*>(to.row(0)), to.stride() / kStep);
}

}  // namespace

Rect stored_rect(const Rect& upright, Size stored, int orientation) {
  const Walk walk = walk_of(orientation);
  const Place begin = begin_of(stored, walk);
  // The two corners of the rectangle, which may have changed places.
  const auto place = [&](int x, int y) {
    return Place{begin.x + x * walk.x_right + y * walk.x_down, begin.y + x * walk.y_right + y * walk.y_down};
  };
  const Place first = place(upright.x, upright.y);
  const Place last = place(upright.x + upright.width - 1, upright.y + upright.height - 1);
  const bool turned = orientation > 4;
  return {first.x < last.x ? first.x : last.x, first.y < last.y ? first.y : last.y,
          turned ? upright.height : upright.width, turned ? upright.width : upright.height};
}

void turn(const Pixels& from, const Rect& part, int orientation, Pixels& to) {
  const bool turned = orientation > 4;
  to.reshape({turned ? part.height : part.width, turned ? part.width : part.height}, from.channels());
  const Walk walk = walk_of(orientation);
  from.channels() == 1 ? turn_pixels<uint8_t>(from, part, walk, to) : turn_pixels<uint32_t>(from, part, walk, to);
}

void turn(std::vector<uint32_t>& values, Size stored, int orientation) {
  if (orientation == 1) return;
  const Walk walk = walk_of(orientation);
  const Place begin = begin_of(stored, walk);
  const Size size = orientation > 4 ? Size{stored.height, stored.width} : stored;
  std::vector<uint32_t> upright(values.size());
  copy_turned(values.data() + begin.y * ptrdiff_t{stored.width} + begin.x,
              walk.x_right + walk.y_right * ptrdiff_t{stored.width},
              walk.x_down + walk.y_down * ptrdiff_t{stored.width}, size, upright.data(),
              static_cast<size_t>(size.width));
  values.swap(upright);
}

}  // namespace lockstep::image
