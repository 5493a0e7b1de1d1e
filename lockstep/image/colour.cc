#include "lockstep/image/colour.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/image/colour_operations.h"
#include "lockstep/image/random_range.h"

namespace lockstep::image {
namespace {

class ColourJitter : public Transform {
 public:
  explicit ColourJitter(const ColourJitterOptions& options) : options_(options) {}
  Slot slot() const override { return Slot::kColour; }
  std::string text() const override {
    return cat("ColorJitter ", options_.brightness, " ", options_.contrast, " ", options_.saturation, " ",
               options_.hue);
  }

  // All numbers are drawn, also for what is not asked for: the order stays when an option changes.
  void apply(Sample& sample, RandomStream random, Scratch& /*scratch*/) const override {
    std::array order = {0, 1, 2, 3};
    for (size_t i = order.size() - 1; i > 0; --i) {
      std::swap(order[i], order[static_cast<size_t>(below(random, static_cast<int>(i) + 1))]);
    }
    const auto factor = [&](double x) { return uniform(random, std::max(0.0, 1 - x), 1 + x); };
    const double brightness = factor(options_.brightness), contrast = factor(options_.contrast);
    const double saturation = factor(options_.saturation), hue = uniform(random, -options_.hue, options_.hue);
    Pixels& image = sample.image;
    for (const int operation : order) {
      if (operation == 0 && options_.brightness != 0) change_brightness(image, brightness);
      if (operation == 1 && options_.contrast != 0) change_contrast(image, contrast);
      if (operation == 2 && options_.saturation != 0) change_saturation(image, saturation);
      if (operation == 3 && options_.hue != 0) turn_hue(image, hue);
    }
  }

 private:
  ColourJitterOptions options_;
};

}  // namespace

std::shared_ptr<const Transform> colour_jitter(const ColourJitterOptions& options) {
  for (const double x : {options.brightness, options.contrast, options.saturation}) {
    if (!(x >= 0 && x <= 15)) throw ConfigError("ColorJitter: brightness, contrast and saturation are 0 to 15");
  }
  if (!(options.hue >= 0 && options.hue <= 0.5)) throw ConfigError("ColorJitter: the hue is 0 to 0.5");
  return std::make_shared<ColourJitter>(options);
}

}  // namespace lockstep::image
