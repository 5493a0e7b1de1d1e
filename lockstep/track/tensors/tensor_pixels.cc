#include "lockstep/track/tensors/tensor_pixels.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace lockstep::track {
namespace {

image::Size size_of(const at::Tensor& plane) {
  return {static_cast<int>(plane.size(-1)), static_cast<int>(plane.size(-2))};
}

}  // namespace

image::Pixels image_pixels(const at::Tensor& image) {
  const at::Tensor values = image.detach().to(at::kCPU, at::kFloat);
  const float low = values.min().item<float>(), high = values.max().item<float>();
  const float scale = high > low ? 255 / (high - low) : 0;
  const auto levels = values.accessor<float, 3>();
  image::Pixels pixels;
  pixels.reshape(size_of(image), 3);
  for (int y = 0; y < pixels.height(); ++y) {
    for (int x = 0; x < pixels.width(); ++x) {
      for (int c = 0; c < 3; ++c) {
        const float level = (levels[levels.size(0) >= 3 ? c : 0][y][x] - low) * scale + 0.5f;
        pixels.at(x, y)[c] = static_cast<uint8_t>(std::isfinite(level) ? std::clamp(level, 0.0f, 255.0f) : 0.0f);
      }
    }
  }
  return pixels;
}

image::Pixels class_pixels(const at::Tensor& mask) {
  constexpr int64_t kNumbers = 248;  // a multiple of the colours', so that larger numbers keep their colours
  const at::Tensor numbers = mask.detach().to(at::kCPU, at::kLong);
  const auto classes = numbers.accessor<int64_t, 2>();
  image::Pixels pixels;
  pixels.reshape(size_of(mask), 1);
  for (int y = 0; y < pixels.height(); ++y) {
    for (int x = 0; x < pixels.width(); ++x) {
      const int64_t number = classes[y][x];
      *pixels.at(x, y) = static_cast<uint8_t>(number <= 0 ? 0 : 1 + (number - 1) % kNumbers);
    }
  }
  return pixels;
}

}  // namespace lockstep::track
