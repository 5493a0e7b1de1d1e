#include "lockstep/track/tensors/mask_picture.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lockstep/image/class_colours.h"
#include "lockstep/image/encode.h"

namespace lockstep::track {
namespace {

constexpr int kBetween = 1;  // pixels

void draw_image(const at::Tensor& image, int left, image::Pixels& to) {
  const at::Tensor values = image.detach().to(at::kCPU, at::kFloat);
  const float low = values.min().item<float>(), high = values.max().item<float>();
  const float scale = high > low ? 255 / (high - low) : 0;
  const auto levels = values.accessor<float, 3>();
  for (int y = 0; y < levels.size(1); ++y) {
    for (int x = 0; x < levels.size(2); ++x) {
      for (int c = 0; c < 3; ++c) {
        const float level = (levels[levels.size(0) == 3 ? c : 0][y][x] - low) * scale;
        to.at(left + x, y)[c] = static_cast<uint8_t>(std::clamp(level + 0.5f, 0.0f, 255.0f));
      }
    }
  }
}

void draw_mask(const at::Tensor& mask, int left, image::Pixels& to) {
  const at::Tensor numbers = mask.detach().to(at::kCPU, at::kLong);
  const auto classes = numbers.accessor<int64_t, 2>();
  for (int y = 0; y < classes.size(0); ++y) {
    for (int x = 0; x < classes.size(1); ++x) {
      const int64_t number = classes[y][x];
      const auto colour = number > 0 ? image::class_colour(static_cast<size_t>(number)) : image::Colour{0, 0, 0};
      std::copy(colour.begin(), colour.end(), to.at(left + x, y));
    }
  }
}

}  // namespace

at::Tensor classes_of(const at::Tensor& scores) {
  return scores.size(0) == 1 ? scores[0].gt(0).to(at::kLong) : scores.argmax(0);
}

Picture mask_picture(const at::Tensor& image, const at::Tensor& mask, const at::Tensor& predicted) {
  const auto height = static_cast<int>(image.size(1)), width = static_cast<int>(image.size(2));
  const int step = width + kBetween;
  image::Pixels pixels;
  pixels.reshape({3 * step - kBetween, height}, 3);
  for (int y = 0; y < height; ++y) std::fill_n(pixels.row(y), int64_t{4} * pixels.width(), uint8_t{255});
  draw_image(image, 0, pixels);
  draw_mask(mask, step, pixels);
  draw_mask(predicted, 2 * step, pixels);
  const auto png = image::encode_png(pixels);
  return {.width = pixels.width(), .height = height, .png = std::string(png.begin(), png.end())};
}

}  // namespace lockstep::track
