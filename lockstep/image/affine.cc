#include "lockstep/image/affine.h"

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/image/random_range.h"
#include "lockstep/image/warp.h"

namespace lockstep::image {
namespace {

class RandomAffine : public Transform {
 public:
  explicit RandomAffine(const AffineOptions& options) : options_(options) {}
  Slot slot() const override { return Slot::kAffine; }

  std::string text() const override {
    std::string text = cat("RandomAffine ", options_.degrees, "°");
    if (options_.translate_x != 0 || options_.translate_y != 0) {
      text += cat(", translate ", options_.translate_x, " x ", options_.translate_y);
    }
    if (options_.scale_low != 1 || options_.scale_high != 1) {
      text += cat(", scale ", options_.scale_low, " to ", options_.scale_high);
    }
    if (options_.shear != 0) text += cat(", shear ", options_.shear, "°");
    if (options_.fill != 0) text += cat(", fill ", +options_.fill);
    return text;
  }

  void apply(Sample& sample, RandomStream random, Scratch& scratch) const override {
    const Size size = sample.image.size();
    AffineParameters parameters;
    const auto either_way = [&](double most) { return uniform(random, -most, most); };
    parameters.degrees = either_way(options_.degrees);
    parameters.translate_x = std::nearbyint(either_way(options_.translate_x * size.width));
    parameters.translate_y = std::nearbyint(either_way(options_.translate_y * size.height));
    parameters.scale = uniform(random, options_.scale_low, options_.scale_high);
    parameters.shear = either_way(options_.shear);
    warp(sample, affine_map(size, parameters), options_.fill, scratch);
  }

 private:
  AffineOptions options_;
};

}  // namespace

std::shared_ptr<const Transform> random_affine(const AffineOptions& options) {
  const auto share = [](double value) { return value >= 0 && value <= 1; };
  if (!(options.degrees >= 0 && options.degrees <= 360 && options.shear >= 0 && options.shear <= 89)) {
    throw ConfigError("RandomAffine: a rotation is 0 to 360 degrees, a shear 0 to 89");
  }
  if (!share(options.translate_x) || !share(options.translate_y)) {
    throw ConfigError("RandomAffine: translations are shares, 0 to 1, of width and height");
  }
  if (!(options.scale_low >= 0.01 && options.scale_low <= options.scale_high && options.scale_high <= 100)) {
    throw ConfigError("RandomAffine: scales are a range from low to high, within 0.01 and 100");
  }
  return std::make_shared<RandomAffine>(options);
}

}  // namespace lockstep::image
