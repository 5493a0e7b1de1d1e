#include "lockstep/image/rand_augment.h"

#include <array>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/image/colour_operations.h"
#include "lockstep/image/random_range.h"
#include "lockstep/image/warp.h"

namespace lockstep::image {
namespace {

constexpr int kMostMagnitude = 30;

// One operation with its strength, from 0 to 1, which some take either way.
struct Strength {
  double size = 0;
  bool negative = false;
  double either_way(double most) const { return negative ? -size * most : size * most; }
};

// What is common to all operations of an image.
struct Work {
  Sample& sample;
  Scratch& scratch;
  void warp_by(const AffineMap& map) const { warp(sample, map, 0, scratch); }
};

struct Operation {
  bool either_way;
  void (*apply)(const Work& work, const Strength& strength);
};

constexpr double kShear = 0.3, kTranslate = 150.0 / 331, kDegrees = 30, kEnhance = 0.9;

// Torchvision's, with its strengths.
constexpr std::array kOperations = {
    Operation{false, [](const Work&, const Strength&) {}},
    Operation{true,
              [](const Work& work, const Strength& strength) { work.warp_by({.x_y = strength.either_way(kShear)}); }},
    Operation{true,
              [](const Work& work, const Strength& strength) { work.warp_by({.y_x = strength.either_way(kShear)}); }},
    Operation{true,
              [](const Work& work, const Strength& strength) {
                work.warp_by({.x_0 = -std::trunc(strength.either_way(kTranslate * work.sample.image.width()))});
              }},
    Operation{true,
              [](const Work& work, const Strength& strength) {
                work.warp_by({.y_0 = -std::trunc(strength.either_way(kTranslate * work.sample.image.height()))});
              }},
    Operation{true,
              [](const Work& work, const Strength& strength) {
                work.warp_by(affine_map(work.sample.image.size(), {.degrees = -strength.either_way(kDegrees)}));
              }},
    Operation{true,
              [](const Work& work, const Strength& strength) {
                change_brightness(work.sample.image, 1 + strength.either_way(kEnhance));
              }},
    Operation{true,
              [](const Work& work, const Strength& strength) {
                change_saturation(work.sample.image, 1 + strength.either_way(kEnhance));
              }},
    Operation{true,
              [](const Work& work, const Strength& strength) {
                change_contrast(work.sample.image, 1 + strength.either_way(kEnhance));
              }},
    Operation{true,
              [](const Work& work, const Strength& strength) {
                change_sharpness(work.sample.image, 1 + strength.either_way(kEnhance), work.scratch.image);
              }},
    Operation{false,
              [](const Work& work, const Strength& strength) {
                posterize(work.sample.image, 8 - static_cast<int>(std::nearbyint(4 * strength.size)));
              }},
    Operation{false,
              [](const Work& work, const Strength& strength) {
                solarize(work.sample.image, static_cast<int>(std::ceil(255 * (1 - strength.size))));
              }},
    Operation{false, [](const Work& work, const Strength&) { autocontrast(work.sample.image); }},
    Operation{false, [](const Work& work, const Strength&) { equalize(work.sample.image); }},
};

class RandAugment : public Transform {
 public:
  RandAugment(int operations, int magnitude) : operations_(operations), magnitude_(magnitude) {}
  Slot slot() const override { return Slot::kChoice; }
  std::string text() const override { return cat("RandAugment ", operations_, " of magnitude ", magnitude_); }

  void apply(Sample& sample, RandomStream random, Scratch& scratch) const override {
    const double size = static_cast<double>(magnitude_) / kMostMagnitude;
    for (int i = 0; i < operations_; ++i) {
      const Operation& operation = kOperations[random.below(kOperations.size())];
      const bool negative = random.below(2) == 1;
      operation.apply({sample, scratch}, {size, operation.either_way && negative});
    }
  }

 private:
  int operations_, magnitude_;
};

}  // namespace

std::shared_ptr<const Transform> rand_augment(int operations, int magnitude) {
  if (operations < 0 || magnitude < 0 || magnitude > kMostMagnitude) {
    throw ConfigError("RandAugment ", operations, " of magnitude ", magnitude,
                      ": there are 0 or more operations, of a magnitude of 0 to 30");
  }
  return std::make_shared<RandAugment>(operations, magnitude);
}

}  // namespace lockstep::image
