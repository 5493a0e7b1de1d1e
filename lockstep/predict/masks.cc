#include "lockstep/predict/masks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/image/class_colours.h"
#include "lockstep/nn/predicted_classes.h"

namespace lockstep::predict {

// Class by class, so that large images with many classes take little memory.
image::Pixels classes_of(const at::Tensor& scores, image::Size size) {
  if (scores.size(0) > kMostClasses) throw BugError("a mask of ", scores.size(0), " classes");
  const auto scaled = [&](int64_t number) {
    const at::Tensor one = scores[number].to(at::kFloat).unsqueeze(0).unsqueeze(0);
    return at::upsample_bilinear2d(one, {size.height, size.width}, /*align_corners=*/false)[0][0];
  };
  at::Tensor best = scaled(0), numbers = at::zeros(best.sizes(), at::kByte);
  if (nn::is_sigmoid(scores.size(0))) numbers = nn::predicted_classes(best.unsqueeze(0), 0).to(at::kByte);
  for (int64_t number = 1; number < scores.size(0); ++number) {
    const at::Tensor other = scaled(number);
    numbers.masked_fill_(other.gt(best), number);
    best = at::maximum(best, other);
  }
  image::Pixels classes;
  classes.reshape(size, 1);
  const auto* from = numbers.const_data_ptr<uint8_t>();
  for (int y = 0; y < size.height; ++y, from += size.width) {
    std::memcpy(classes.row(y), from, static_cast<size_t>(size.width));
  }
  return classes;
}

image::Pixels to_grey(const image::Pixels& classes, int64_t count) {
  image::Pixels grey;
  grey.reshape(classes.size(), 1);
  const int64_t last = std::max<int64_t>(1, count - 1);
  for (int y = 0; y < classes.height(); ++y) {
    for (int x = 0; x < classes.width(); ++x) *grey.at(x, y) = static_cast<uint8_t>(*classes.at(x, y) * 255 / last);
  }
  return grey;
}

image::Pixels overlay(const image::Pixels& image, const image::Pixels& classes) {
  image::Pixels shown;
  shown.reshape(image.size(), 3);
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      const size_t number = *classes.at(x, y);
      for (int c = 0; c < 3; ++c) {
        const int level = image.at(x, y)[c];
        const int over = number == 0 ? level : image::class_colour(number)[static_cast<size_t>(c)];
        shown.at(x, y)[c] = static_cast<uint8_t>((level + over) / 2);
      }
    }
  }
  return shown;
}

}  // namespace lockstep::predict
