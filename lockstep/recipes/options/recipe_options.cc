#include "lockstep/recipes/options/recipe_options.h"

#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/datasets/files/kind.h"
#include "lockstep/datasets/packed/manifest.h"

namespace lockstep::recipes {
namespace {

void declare_size(config::OptionSet& options, const char* help, std::optional<int>* size) {
  options.number("size", "PX", help, size, 16, 4096, config::Effect::kIdentity);
}

constexpr double kLeastAlpha = 1e-3, kMostAlpha = 1e3;

void declare_alpha(config::OptionSet& options, const char* name, const char* help, std::optional<double>* alpha) {
  options.number(name, "ALPHA", help, alpha, 0, kMostAlpha, config::Effect::kIdentity).none_at("0");
}

void check_alpha(const char* name, const std::optional<double>& alpha) {
  if (alpha.value_or(0) == 0 || *alpha >= kLeastAlpha) return;
  throw ConfigError("--", name, ' ', *alpha, ": expected a number from ", kLeastAlpha, " to ", kMostAlpha,
                    ", or 0 for no ", name);
}

void check_augment(const datasets::ImageOptions& images, const std::string& data) {
  if (data.empty() && images.augment) throw ConfigError("--augment: goes with --data; drawn images are not augmented");
}

}  // namespace

void ImagenetOptions::declare(config::OptionSet& options) {
  options.word("arch", "the network", &arch, config::Effect::kIdentity);
  declare_size(options, "pixels a side of images (left out: 64 of drawn ones, 224 of --data, 32 of CIFAR's)", &size);
  images.declare(options);
  declare_alpha(options, "mixup", "blend training images and classes in pairs (MixUp), by Beta(ALPHA, ALPHA); 0: off",
                &mixup);
  declare_alpha(options, "cutmix", "paste parts of training images into others (CutMix); with --mixup one of both",
                &cutmix);
  options
      .number("label-smoothing", "SHARE", "of the loss, spread over all classes", &label_smoothing, 0, 0.999,
              config::Effect::kIdentity)
      .none_at("0");
}

int ImagenetOptions::side(const std::string& data) const {
  using datasets::Kind, datasets::Packed, datasets::usual_size;
  if (size) return *size;
  if (data.empty()) return 64;
  switch (datasets::kind_of(data)) {
    case Kind::kCifar10:
    case Kind::kCifar100:
      return usual_size(Packed::kCifar10);
    case Kind::kPacked:
      return usual_size(datasets::packed_kind(data));
    default:
      return usual_size(Packed::kImages);
  }
}

void ImagenetOptions::resolve(const std::string& data) {
  check_augment(images, data);
  size = side(data);
}

void ImagenetOptions::check() const {
  // Below, convolutions see nothing but padding, and oneDNN's gradients of such weights are not the same in every
  // process.
  if (size && *size < 32)
    throw ConfigError("--size ", *size, ": imagenet's networks halve images five times; expected 32 or more");
  constexpr int kAlexnetLeast = 63;
  if (arch == Arch::kAlexnet && size && *size < kAlexnetLeast)
    throw ConfigError("--size ", *size, ": nothing is left for alexnet's last pooling; expected ", kAlexnetLeast,
                      " or more");
  check_alpha("mixup", mixup);
  check_alpha("cutmix", cutmix);
}

void UNetOptions::declare(config::OptionSet& options) {
  declare_size(options, "pixels of images' shorter side (left out: 64 of drawn ones, 256 of --data)", &size);
  images.declare(options);
  options.flag("bilinear", "upsample by interpolation, in place of transposed convolutions", &bilinear,
               config::Effect::kIdentity);
  options.number("width", "N", "channels of the first level; each further one has twice as many", &width, 1, 1024,
                 config::Effect::kIdentity);
}

int UNetOptions::side(const std::string& data) const {
  return size.value_or(data.empty() ? 64 : usual_size(datasets::Packed::kMasks));
}

void UNetOptions::resolve(const std::string& data) {
  check_augment(images, data);
  size = side(data);
}

// A new recipe is one more line here.
train::RecipeDescriptions describe_recipes() {
  return {std::make_shared<MnistOptions>(), std::make_shared<UNetOptions>(), std::make_shared<ImagenetOptions>()};
}

}  // namespace lockstep::recipes
