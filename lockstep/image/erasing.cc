#include "lockstep/image/erasing.h"

#include <cmath>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/exact_math.h"
#include "lockstep/image/grey.h"
#include "lockstep/image/random_range.h"

namespace lockstep::image {
namespace {

class RandomErasing : public Transform {
 public:
  explicit RandomErasing(const ErasingOptions& options)
      : options_(options), log_low_(exact_log(options.ratio_low)), log_high_(exact_log(options.ratio_high)) {}
  Slot slot() const override { return Slot::kErasing; }
  std::string text() const override {
    const ErasingOptions usual;
    std::string text = cat("RandomErasing ", options_.share);
    if (options_.scale_low != usual.scale_low || options_.scale_high != usual.scale_high) {
      text += cat(" (", options_.scale_low, " to ", options_.scale_high, ")");
    }
    if (options_.ratio_low != usual.ratio_low || options_.ratio_high != usual.ratio_high) {
      text += cat(" (ratio ", options_.ratio_low, " to ", options_.ratio_high, ")");
    }
    const auto& value = options_.value;
    if (options_.noise) return text + " (noise)";
    if (value != usual.value) text += cat(" (value ", +value[0], " ", +value[1], " ", +value[2], ")");
    return text;
  }

  void apply(Sample& sample, RandomStream random, Scratch& /*scratch*/) const override {
    if (random.uniform() >= options_.share) return;
    const auto rect = choose(sample.image.size(), random);
    if (!rect) return;
    Pixels& image = sample.image;
    const int colours = image.colours();
    const bool of_grey = image.channels() < 3;
    const uint8_t grey = grey_of(options_.value.data());
    constexpr int64_t kPeriod = 1 << 21;  // noise repeats itself after so many pixels: a slot has 2^22 numbers
    const RandomStream begin = random;
    int64_t pixels = 0;
    for (int y = rect->y; y < rect->y + rect->height; ++y) {
      for (int x = rect->x; x < rect->x + rect->width; ++x) {
        uint8_t* const pixel = image.at(x, y);
        if (pixels++ % kPeriod == 0) random = begin;
        const uint32_t noise = options_.noise ? random.bits() : 0;
        for (int c = 0; c < colours; ++c) {
          const uint8_t value = of_grey ? grey : options_.value[static_cast<size_t>(c)];
          pixel[c] = options_.noise ? static_cast<uint8_t>(noise >> (8 * c)) : value;
        }
        if (image.has_alpha()) pixel[3] = options_.noise ? static_cast<uint8_t>(noise >> 24) : 0;
      }
    }
  }

 private:
  // Ten tries of a random area and ratio of the sides; nothing if none is smaller than the image.
  std::optional<Rect> choose(Size image, RandomStream& random) const {
    const double area = static_cast<double>(image.width) * image.height;
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double target = area * uniform(random, options_.scale_low, options_.scale_high);
      const double ratio = exact_exp(uniform(random, log_low_, log_high_));
      const int height = static_cast<int>(std::nearbyint(std::sqrt(target * ratio)));
      const int width = static_cast<int>(std::nearbyint(std::sqrt(target / ratio)));
      if (height >= image.height || width >= image.width) continue;
      const int y = below(random, image.height - height + 1), x = below(random, image.width - width + 1);
      return Rect{x, y, width, height};
    }
    return std::nullopt;
  }

  ErasingOptions options_;
  double log_low_, log_high_;
};

}  // namespace

std::shared_ptr<const Transform> random_erasing(const ErasingOptions& options) {
  if (!(options.share >= 0 && options.share <= 1)) throw ConfigError("RandomErasing: the share of images is 0 to 1");
  if (!(options.scale_low >= 0 && options.scale_low <= options.scale_high && options.scale_high <= 1 &&
        options.ratio_low > 0 && options.ratio_low <= options.ratio_high)) {
    throw ConfigError("RandomErasing: scales (0 to 1) and ratios (above 0) are ranges from low to high");
  }
  return std::make_shared<RandomErasing>(options);
}

}  // namespace lockstep::image
