#include "lockstep/image/geometry.h"

#include <algorithm>

#include "lockstep/image/axis.h"

namespace lockstep::image {
namespace {

// Whether [from, from + length) is within [0, size).
bool within(int from, int length, int size) { return from >= 0 && from + length <= size; }

// The pixels [first, last) of an axis on which the pixels [from, from + length) of its resized form depend.
Taps needed_of(int in, int out, int from, int length, Filter filter) {
  const int first = std::max(0, from), last = std::min(out, from + length);
  if (first >= last) return {0, 1};  // the result is filled
  if (filter == Filter::kNearest) return {nearest_of(in, out, first), nearest_of(in, out, last - 1) + 1};
  return {taps_of(in, out, first).first, taps_of(in, out, last - 1).last};
}

}  // namespace

Geometry whole(Size image) {
  const Rect all{0, 0, image.width, image.height};
  return {.image = image, .source = all, .resized = image, .window = all};
}

std::optional<Geometry> cropped(const Geometry& before, const Rect& of_result, uint8_t fill) {
  Geometry after = before;
  after.window.x += before.flip_x ? before.window.width - of_result.x - of_result.width : of_result.x;
  after.window.y += before.flip_y ? before.window.height - of_result.y - of_result.height : of_result.y;
  after.window.width = of_result.width;
  after.window.height = of_result.height;
  if (within(of_result.x, of_result.width, before.window.width) &&
      within(of_result.y, of_result.height, before.window.height)) {
    return after;
  }
  // What was cropped away must not come back in place of the fill.
  const Rect& window = before.window;
  if (!within(-window.x, before.resized.width, window.width) ||
      !within(-window.y, before.resized.height, window.height)) {
    return std::nullopt;
  }
  if (window.size() != before.resized && fill != before.fill) return std::nullopt;
  after.fill = fill;
  return after;
}

std::optional<Geometry> resized(const Geometry& before, Size to) {
  const Rect& window = before.window;
  if (before.resized != before.source.size() || !within(window.x, window.width, before.resized.width) ||
      !within(window.y, window.height, before.resized.height)) {
    return std::nullopt;
  }
  Geometry after = before;
  after.source = {before.source.x + window.x, before.source.y + window.y, window.width, window.height};
  after.resized = to;
  after.window = {0, 0, to.width, to.height};
  return after;
}

Geometry flipped_x(const Geometry& before) {
  Geometry after = before;
  after.flip_x = !before.flip_x;
  return after;
}

Geometry flipped_y(const Geometry& before) {
  Geometry after = before;
  after.flip_y = !before.flip_y;
  return after;
}

Rect needed(const Geometry& geometry, Filter filter) {
  const Rect &source = geometry.source, &window = geometry.window;
  const Taps across = needed_of(source.width, geometry.resized.width, window.x, window.width, filter);
  const Taps down = needed_of(source.height, geometry.resized.height, window.y, window.height, filter);
  return {source.x + across.first, source.y + down.first, across.last - across.first, down.last - down.first};
}

}  // namespace lockstep::image
