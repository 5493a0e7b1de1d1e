#include "lockstep/datasets/augment.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lockstep/image/crops.h"
#include "lockstep/image/erasing.h"
#include "lockstep/image/fit.h"
#include "lockstep/image/flips.h"
#include "lockstep/image/rand_augment.h"
#include "lockstep/image/transpose.h"

namespace lockstep::datasets {
namespace {

using Transforms = std::vector<std::shared_ptr<const image::Transform>>;

constexpr image::Normalize kImageNet{.mean = {0.485f, 0.456f, 0.406f}, .std = {0.229f, 0.224f, 0.225f}};

bool crops(Augment augment) { return augment == Augment::kStandard || augment == Augment::kStrong; }

ImageSetup setup_of(const OpenOptions& options, image::Size result, const Transforms& train,
                    const Transforms& evaluation) {
  image::DecodeOptions decode = turned_by(options.images.exif);
  decode.fast = options.images.fast_decode;
  return {.train = std::make_shared<image::Pipeline>(train),
          .evaluation = std::make_shared<image::Pipeline>(evaluation),
          .augment = config::word_of(options.images.augment.value_or(Augment::kStandard)),
          .result = result,
          .decode = decode,
          .dtype = options.dtype,
          .channels_last = options.channels_last,
          .as_bytes = options.as_bytes,
          .encoded = options.encoded};
}

// Images with classes. `plain` is what evaluation does, `cropping` what standard does in its place.
ImageSetup class_setup(const OpenOptions& options, const Transforms& plain, const Transforms& cropping) {
  const Augment augment = options.images.augment.value_or(Augment::kStandard);
  Transforms train = crops(augment) ? cropping : plain;
  if (augment != Augment::kNone) train.push_back(image::flip_x());
  if (augment == Augment::kStrong) {
    train.push_back(image::rand_augment());
    train.push_back(image::random_erasing({.share = 0.1}));
  }
  return setup_of(options, {options.size, options.size}, train, plain);
}

// A square of these sides, anywhere in an image of the size `image`.
std::shared_ptr<const image::Transform> part_of(image::Size image, int side) {
  if (side > std::min(image.width, image.height)) {
    throw ConfigError("--crop ", side, ": images have ", image.width, " x ", image.height,
                      " pixels, after --size or --scale; give at most ", std::min(image.width, image.height));
  }
  return image::random_crop({side, side});
}

// At least half of an image, scaled to the size `result`.
std::shared_ptr<const image::Transform> half_or_more_of(image::Size result) {
  const double ratio = static_cast<double>(result.width) / result.height;
  return image::random_resized_crop(result,
                                    {.scale_low = 0.5, .scale_high = 1, .ratio_low = ratio, .ratio_high = ratio});
}

}  // namespace

ImageSetup photograph_setup(const OpenOptions& options) {
  const image::Size size{options.size, options.size};
  ImageSetup setup = class_setup(options, {image::resize_shorter(options.size * 256 / 224), image::center_crop(size)},
                                 {image::random_resized_crop(size)});
  setup.normalize = kImageNet;
  return setup;
}

ImageSetup small_image_setup(const OpenOptions& options, image::Size stored, const image::Normalize& normalize) {
  const image::Size size{options.size, options.size};
  Transforms plain, cropping;
  if (stored != size) plain = cropping = {image::resize_to(size)};
  cropping.push_back(image::random_crop(size, options.size / 8));
  ImageSetup setup = class_setup(options, plain, cropping);
  setup.normalize = normalize;
  return setup;
}

image::Size sides_like(image::Size image, int shorter) {
  constexpr int kStep = 16;               // U-Net halves images four times
  constexpr double kMostSteps = 1 << 26;  // the sides of files that are refused later
  const auto rounded = [kMostSteps](double pixels) {
    return static_cast<int>(std::clamp(std::round(pixels / kStep), 1.0, kMostSteps)) * kStep;
  };
  const double scale = static_cast<double>(shorter) / std::min(image.width, image.height);
  return {rounded(image.width * scale), rounded(image.height * scale)};
}

image::Size sides_like(image::Size image, const OpenOptions& options) {
  if (!options.scale) return sides_like(image, options.size);
  return sides_like(image, std::max(1, static_cast<int>(*options.scale * std::min(image.width, image.height))));
}

ImageSetup pair_setup(const OpenOptions& options, image::Size result) {
  const Augment augment = options.images.augment.value_or(Augment::kStandard);
  Transforms train = {image::fit(result)};
  if (options.crop) {
    train.push_back(part_of(result, *options.crop));
  } else if (crops(augment)) {
    train = {half_or_more_of(result)};
  }
  if (augment != Augment::kNone) train.push_back(image::flip_x());
  if (crops(augment)) train.push_back(image::flip_y());
  if (crops(augment) && options.crop) train.push_back(image::transpose());
  if (augment == Augment::kStrong) train.push_back(image::rand_augment());
  ImageSetup setup = setup_of(options, result, train, {image::fit(result)});
  if (options.crop) setup.crop = image::Size{*options.crop, *options.crop};
  return setup;
}

}  // namespace lockstep::datasets
