#include "lockstep/image/resize.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/image/resize_passes.h"

namespace lockstep::image {
namespace {

// The part of [from, from + length) within [0, size).
Taps inside(int from, int length, int size) {
  const int first = std::clamp(from, 0, size);
  return {first, std::clamp(from + length, first, size)};
}

// Memory is taken for no more pixels than that.
void check_area(int64_t width, int64_t height) {
  constexpr int64_t kMostPixels = 1 << 28;
  if (width * height > kMostPixels) {
    throw DataError("the transforms make ", width, " x ", height, " pixels of it, and at most ", kMostPixels,
                    " are possible; remove the file, or crop it");
  }
}

// What one call does: the pixels `across` and `down` of the resized image are written.
struct Task {
  Size size() const { return {across.last - across.first, down.last - down.first}; }
  bool resizes_rows() const { return geometry.resized.width != geometry.source.width; }
  bool resizes_columns() const { return geometry.resized.height != geometry.source.height; }
  // Where the source's first pixel is in `in`.
  int left() const { return geometry.source.x - held.x; }
  int top() const { return geometry.source.y - held.y; }

  const Pixels& in;
  const Rect& held;
  const Geometry& geometry;
  Taps across, down;
};

// The places in `in` of pixels that are copied.
void find_places(int in, int out, Taps wanted, int origin, bool flip, std::vector<int>& places) {
  places.clear();
  for (int x = wanted.first; x < wanted.last; ++x) places.push_back(nearest_of(in, out, x) + origin);
  if (flip) std::reverse(places.begin(), places.end());
}

template <typename T>
void copy_pixels(const Pixels& in, const std::vector<int>& columns, const std::vector<int>& rows, Pixels& out) {
  for (int y = 0; y < out.height(); ++y) {
    const auto* from = reinterpret_cast<const T*>(in.row(rows[static_cast<size_t>(y)]));
    auto* to = reinterpret_cast<T*>(out.row(y));
    for (size_t x = 0; x < columns.size(); ++x) to[x] = from[columns[x]];
  }
}

// Writes `part` to `out`, where its first pixel is at (x, y); the rest of `out` becomes `value`.
void put_on_ground(const Pixels& part, int x, int y, uint8_t value, Pixels& out) {
  for (int row = 0; row < out.height(); ++row) {
    std::memset(out.row(row), value, static_cast<size_t>(out.width()) * static_cast<size_t>(out.step()));
  }
  for (int row = 0; row < part.height(); ++row) {
    std::memcpy(out.at(x, y + row), part.row(row),
                static_cast<size_t>(part.width()) * static_cast<size_t>(part.step()));
  }
}

}  // namespace

struct Resizer::State {
  // The weights of an axis, at least of the pixels `wanted`, until the next call. Crops of every size come; what is
  // kept stays below 1 MB. Windows of a short axis share its weights; of a long one only the window has some.
  const Axis& axis_of(int in, int out, Taps wanted) {
    constexpr size_t kMostWeights = 1 << 18;
    constexpr int kShort = 4096;  // pixels
    if (out <= kShort) wanted = {0, out};
    if (weights > kMostWeights) {
      axes.clear();
      weights = 0;
    }
    const std::array key{in, out, wanted.first, wanted.last};
    const auto found = axes.find(key);
    if (found != axes.end()) return found->second;
    Axis axis = make_axis(in, out, wanted);
    weights += axis.weights.size();
    return axes.emplace(key, std::move(axis)).first->second;
  }

  // Pixels that are not mixed: nearest ones, flips, and crops without a resize.
  void copy(const Task& task, Pixels& out) {
    const Geometry& g = task.geometry;
    find_places(g.source.width, g.resized.width, task.across, task.left(), g.flip_x, columns);
    find_places(g.source.height, g.resized.height, task.down, task.top(), g.flip_y, rows);
    out.reshape(task.size(), task.in.channels());
    task.in.channels() == 1 ? copy_pixels<uint8_t>(task.in, columns, rows, out)
                            : copy_pixels<uint32_t>(task.in, columns, rows, out);
  }

  // Rows first, as Pillow does: only those on which the wanted columns' pixels depend. Between the passes are 8 bits.
  void mix(const Task& task, Pixels& out) {
    if (!task.resizes_columns()) {
      mix_rows(task, task.down, task.geometry.flip_y, out);
    } else if (!task.resizes_rows() && !task.geometry.flip_x) {
      mix_columns(task, task.in, task.left() + task.across.first, task.top(), out);
    } else {
      const Geometry& g = task.geometry;
      const Taps used{taps_of(g.source.height, g.resized.height, task.down.first).first,
                      taps_of(g.source.height, g.resized.height, task.down.last - 1).last};
      mix_rows(task, used, false, between);
      mix_columns(task, between, 0, -used.first, out);
    }
  }

  // Resizes the rows `used` of the source.
  void mix_rows(const Task& task, Taps used, bool flip_y, Pixels& out) {
    const Geometry& g = task.geometry;
    check_area(task.size().width, used.last - used.first);
    out.reshape({task.size().width, used.last - used.first}, task.in.channels());
    const Axis& axis = axis_of(g.source.width, g.resized.width, task.across);
    ResizePass pass{.from = {task.in.row(task.top() + used.first), task.in.stride()},
                    .to = {out.row(0), out.stride()},
                    .axis = axis,
                    .begin = task.across.first - axis.begin,
                    .count = out.width(),
                    .origin = task.left(),
                    .other = out.height(),
                    .flip = g.flip_x};
    if (flip_y) pass.to = {out.row(out.height() - 1), -out.stride()};
    task.in.channels() == 1 ? resize_grey_rows(pass) : resize_colour_rows(pass);
  }

  // Resizes columns from the pixel `left` of the rows of `in` on; its row `top` is the source's first one.
  void mix_columns(const Task& task, const Pixels& in, int left, int top, Pixels& out) {
    const Geometry& g = task.geometry;
    out.reshape(task.size(), in.channels());
    const Axis& axis = axis_of(g.source.height, g.resized.height, task.down);
    resize_columns({.from = {in.at(left, 0), in.stride()},
                    .to = {out.row(0), out.stride()},
                    .axis = axis,
                    .begin = task.down.first - axis.begin,
                    .count = out.height(),
                    .origin = top,
                    .other = out.width() * out.step(),
                    .flip = g.flip_y});
  }

  std::map<std::array<int, 4>, Axis> axes;  // by length, result's length, and the pixels that have weights
  size_t weights = 0;                       // of all axes
  Pixels between, part;
  std::vector<int> columns, rows;
};

Resizer::Resizer() : state_(std::make_unique<State>()) {}
Resizer::~Resizer() = default;
Resizer::Resizer(Resizer&&) noexcept = default;
Resizer& Resizer::operator=(Resizer&&) noexcept = default;

void Resizer::resize(const Pixels& in, const Rect& held, const Geometry& geometry, Filter filter, Pixels& out) {
  const Rect& window = geometry.window;
  check_area(window.width, window.height);
  const Task task{in, held, geometry, inside(window.x, window.width, geometry.resized.width),
                  inside(window.y, window.height, geometry.resized.height)};
  const bool filled = task.size() != window.size();
  Pixels& target = filled ? state_->part : out;
  if (filter == Filter::kNearest || (!task.resizes_rows() && !task.resizes_columns())) {
    state_->copy(task, target);
  } else if (task.size().width > 0 && task.size().height > 0) {
    state_->mix(task, target);
  } else {
    target.reshape({}, in.channels());
  }
  if (!filled) return;
  // Flips are of the whole result.
  const int left = task.across.first - window.x, right = window.width - left - target.width();
  const int top = task.down.first - window.y, bottom = window.height - top - target.height();
  out.reshape(window.size(), in.channels());
  if (target.empty()) {
    put_on_ground(target, 0, 0, geometry.fill, out);
  } else {
    put_on_ground(target, geometry.flip_x ? right : left, geometry.flip_y ? bottom : top, geometry.fill, out);
  }
}

}  // namespace lockstep::image
