#include "lockstep/track/tensors/mask_picture.h"

#include <algorithm>

#include "lockstep/image/class_colours.h"
#include "lockstep/image/encode.h"
#include "lockstep/track/tensors/tensor_pixels.h"

namespace lockstep::track {
namespace {

constexpr int kBetween = 1;  // pixels

void draw_image(const image::Pixels& image, int left, image::Pixels& to) {
  for (int y = 0; y < image.height(); ++y) {
    std::copy_n(image.row(y), int64_t{4} * image.width(), to.at(left, y));
  }
}

void draw_mask(const at::Tensor& mask, int left, image::Pixels& to) {
  const image::Pixels classes = class_pixels(mask);
  for (int y = 0; y < classes.height(); ++y) {
    for (int x = 0; x < classes.width(); ++x) {
      const size_t number = *classes.at(x, y);
      const auto colour = number > 0 ? image::class_colour(number) : image::Colour{0, 0, 0};
      std::copy(colour.begin(), colour.end(), to.at(left + x, y));
    }
  }
}

}  // namespace

Picture mask_picture(const at::Tensor& image, const at::Tensor& mask, const at::Tensor& predicted) {
  const auto height = static_cast<int>(image.size(1)), width = static_cast<int>(image.size(2));
  const int step = width + kBetween;
  image::Pixels pixels;
  pixels.reshape({3 * step - kBetween, height}, 3);
  for (int y = 0; y < height; ++y) std::fill_n(pixels.row(y), int64_t{4} * pixels.width(), uint8_t{255});
  draw_image(image_pixels(image), 0, pixels);
  draw_mask(mask, step, pixels);
  draw_mask(predicted, 2 * step, pixels);
  const auto png = image::encode_png(pixels);
  return {.width = pixels.width(), .height = height, .png = std::string(png.begin(), png.end())};
}

}  // namespace lockstep::track
