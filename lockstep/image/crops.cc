#include "lockstep/image/crops.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/exact_math.h"
#include "lockstep/image/random_range.h"

namespace lockstep::image {
namespace {

std::string text_of(Size size) {
  return size.width == size.height ? cat(size.width) : cat(size.width, " x ", size.height);
}

void check_size(const char* name, Size size) {
  const auto possible = [](int side) { return side >= 1 && side <= kMostSide; };
  if (!possible(size.width) || !possible(size.height)) {
    throw ConfigError(name, " ", size.width, " x ", size.height, ": sizes are 1 to ", kMostSide);
  }
}

// The nearest whole number, ties to even, as Python rounds. What is no size of an image is cut off.
int rounded(double x) { return static_cast<int>(std::min(std::nearbyint(x), 2.0 * kMostSide)); }

class Crop : public Transform {
 public:
  Slot slot() const override { return Slot::kCrop; }
  void apply(Sample& sample, RandomStream random, Scratch& scratch) const override {
    apply_plan(*this, sample, random, scratch);
  }
};

// Ten tries of a random area and ratio of the sides; else the largest part in the middle whose ratio is allowed.
class RandomResizedCrop : public Crop {
 public:
  RandomResizedCrop(Size size, const ResizedCropOptions& options)
      : size_(size),
        options_(options),
        log_low_(exact_log(options.ratio_low)),
        log_high_(exact_log(options.ratio_high)) {}

  std::string text() const override {
    const ResizedCropOptions usual;
    std::string text = cat("RandomResizedCrop ", text_of(size_));
    if (options_.scale_low != usual.scale_low || options_.scale_high != usual.scale_high) {
      text += cat(" (", options_.scale_low, " to ", options_.scale_high, ")");
    }
    if (options_.ratio_low != usual.ratio_low || options_.ratio_high != usual.ratio_high) {
      text += cat(" (ratio ", options_.ratio_low, " to ", options_.ratio_high, ")");
    }
    return text;
  }

  std::optional<Geometry> plan(const Geometry& before, RandomStream random) const override {
    const auto crop = cropped(before, choose(before.result(), random));
    return crop ? resized(*crop, size_) : std::nullopt;
  }

 private:
  Rect choose(Size image, RandomStream& random) const {
    const double area = static_cast<double>(image.width) * image.height;
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double target = area * uniform(random, options_.scale_low, options_.scale_high);
      const double ratio = exact_exp(uniform(random, log_low_, log_high_));
      const int width = rounded(std::sqrt(target * ratio)), height = rounded(std::sqrt(target / ratio));
      if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
      const int y = below(random, image.height - height + 1), x = below(random, image.width - width + 1);
      return {x, y, width, height};
    }
    return middle(image);
  }

  Rect middle(Size image) const {
    const double ratio = static_cast<double>(image.width) / image.height;
    Size size = image;
    if (ratio < options_.ratio_low)
      size.height = std::clamp(rounded(image.width / options_.ratio_low), 1, image.height);
    if (ratio > options_.ratio_high)
      size.width = std::clamp(rounded(image.height * options_.ratio_high), 1, image.width);
    return {(image.width - size.width) / 2, (image.height - size.height) / 2, size.width, size.height};
  }

  Size size_;
  ResizedCropOptions options_;
  double log_low_, log_high_;
};

class Resize : public Crop {
 public:
  explicit Resize(Size size) : size_(size) {}
  explicit Resize(int shorter) : shorter_(shorter) {}

  std::string text() const override {
    return shorter_ > 0 ? cat("Resize ", shorter_) : cat("Resize to ", text_of(size_));
  }

  std::optional<Geometry> plan(const Geometry& before, RandomStream /*random*/) const override {
    return resized(before, shorter_ > 0 ? size_for(before.result()) : size_);
  }

 private:
  Size size_for(Size image) const {
    const auto longer = [&](int shorter_side, int longer_side) {
      const int64_t side = int64_t{shorter_} * longer_side / shorter_side;
      if (side <= kMostSide) return static_cast<int>(side);
      throw DataError(text(), " of ", image.width, " x ", image.height, " pixels gives a side of ", side,
                      ", and sides have at most ", kMostSide, "; remove the file, or crop it first");
    };
    return image.width <= image.height ? Size{shorter_, longer(image.width, image.height)}
                                       : Size{longer(image.height, image.width), shorter_};
  }

  Size size_;
  int shorter_ = 0;
};

class CenterCrop : public Crop {
 public:
  explicit CenterCrop(Size size) : size_(size) {}
  std::string text() const override { return cat("CenterCrop ", text_of(size_)); }

  std::optional<Geometry> plan(const Geometry& before, RandomStream /*random*/) const override {
    const Size image = before.result();
    return cropped(before,
                   {offset(image.width, size_.width), offset(image.height, size_.height), size_.width, size_.height});
  }

 private:
  static int offset(int image, int crop) {
    return crop > image ? -((crop - image) / 2) : rounded((image - crop) / 2.0);
  }
  Size size_;
};

class RandomCrop : public Crop {
 public:
  RandomCrop(Size size, int padding) : size_(size), padding_(padding) {}
  std::string text() const override {
    return padding_ == 0 ? cat("RandomCrop ", text_of(size_))
                         : cat("RandomCrop ", text_of(size_), " (padding ", padding_, ")");
  }

  std::optional<Geometry> plan(const Geometry& before, RandomStream random) const override {
    const Size image = before.result();
    const int y = offset(random, image.height, size_.height), x = offset(random, image.width, size_.width);
    return cropped(before, {x, y, size_.width, size_.height});
  }

 private:
  int offset(RandomStream& random, int image, int crop) const {
    const int padding = padding_ + std::max(0, crop - image - 2 * padding_);
    return below(random, image + 2 * padding - crop + 1) - padding;
  }
  Size size_;
  int padding_;
};

}  // namespace

std::shared_ptr<const Transform> random_resized_crop(Size size, const ResizedCropOptions& options) {
  check_size("RandomResizedCrop", size);
  if (!(options.scale_low > 0 && options.scale_low <= options.scale_high && options.ratio_low > 0 &&
        options.ratio_low <= options.ratio_high)) {
    throw ConfigError("RandomResizedCrop: scales and ratios are ranges of positive numbers, from low to high");
  }
  return std::make_shared<RandomResizedCrop>(size, options);
}

std::shared_ptr<const Transform> resize_shorter(int pixels) {
  check_size("Resize", {pixels, pixels});
  return std::make_shared<Resize>(pixels);
}

std::shared_ptr<const Transform> resize_to(Size size) {
  check_size("Resize", size);
  return std::make_shared<Resize>(size);
}

std::shared_ptr<const Transform> center_crop(Size size) {
  check_size("CenterCrop", size);
  return std::make_shared<CenterCrop>(size);
}

std::shared_ptr<const Transform> random_crop(Size size, int padding) {
  check_size("RandomCrop", size);
  if (padding < 0 || padding > kMostSide) {
    throw ConfigError("RandomCrop: a padding of ", padding, " pixels: it is 0 to ", kMostSide);
  }
  return std::make_shared<RandomCrop>(size, padding);
}

}  // namespace lockstep::image
