#include "lockstep/image/sheet.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lockstep/image/class_colours.h"

namespace lockstep::image {
namespace {

constexpr uint8_t kGround = 40;

Size fitting(Size size) {
  const double scale = static_cast<double>(Sheet::kCell) / std::max(size.width, size.height);
  const auto scaled = [scale](int side) { return std::clamp(static_cast<int>(side * scale + 0.5), 1, Sheet::kCell); };
  return {scaled(size.width), scaled(size.height)};
}

}  // namespace

Sheet::Sheet(int samples, int pictures, int across)
    : across_(across), wide_(pictures * kCell + (pictures - 1) * kGap + kBetween) {
  const int rows = std::max(1, (samples + across - 1) / across);
  pixels_.reshape({across * wide_ + kBetween, rows * (kCell + kBetween) + kBetween}, 3);
  for (int y = 0; y < pixels_.height(); ++y) std::fill_n(pixels_.row(y), 4 * pixels_.width(), kGround);
}

void Sheet::draw(int sample, int picture, const Pixels& image, const Pixels& classes) {
  const Geometry all = whole(image.size()), fitted = resized(all, fitting(image.size())).value();
  resizer_.resize(image, all.source, fitted, Filter::kBilinear, image_);
  if (!classes.empty()) resizer_.resize(classes, all.source, fitted, Filter::kNearest, classes_);
  const int left = left_of(sample) + picture * (kCell + kGap) + (kCell - image_.width()) / 2;
  const int top = top_of(sample) + (kCell - image_.height()) / 2;
  for (int y = 0; y < image_.height(); ++y) {
    for (int x = 0; x < image_.width(); ++x) {
      const uint8_t* const from = image_.at(x, y);
      uint8_t* const to = pixels_.at(left + x, top + y);
      const int number = classes.empty() ? 0 : *classes_.at(x, y);
      for (size_t c = 0; c < 3; ++c) {
        const int level = image_.channels() == 1 ? from[0] : from[c];
        const int over = number == 0 ? level : class_colour(static_cast<size_t>(number))[c];
        to[c] = static_cast<uint8_t>((level * 3 + over * 2) / 5);
      }
    }
  }
}

void Sheet::frame(int sample, uint8_t red, uint8_t green, uint8_t blue) {
  constexpr int kBeside = 4, kThick = 2;  // pixels
  const std::array<uint8_t, 3> colour = {red, green, blue};
  const int left = left_of(sample) - kBeside, right = left + wide_ - kBetween + 2 * kBeside;
  const int top = top_of(sample) - kBeside, bottom = top + kCell + 2 * kBeside;
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x) {
      const int inwards = std::min({x - left, right - 1 - x, y - top, bottom - 1 - y});
      if (inwards < kThick) std::memcpy(pixels_.at(x, y), colour.data(), colour.size());
    }
  }
}

}  // namespace lockstep::image
