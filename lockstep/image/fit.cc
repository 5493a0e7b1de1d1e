#include "lockstep/image/fit.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

// a · b / c, rounded to the nearest, at least 1 and at most kMostSide.
int scaled(int a, int b, int c) {
  return static_cast<int>(std::clamp<int64_t>((int64_t{a} * b + c / 2) / c, 1, kMostSide));
}

class Fit final : public Transform {
 public:
  explicit Fit(Size size) : size_(size) {}

  std::string text() const override {
    return size_.width == size_.height ? cat("Fit ", size_.width) : cat("Fit ", size_.width, " x ", size_.height);
  }
  Slot slot() const override { return Slot::kCrop; }

  std::optional<Geometry> plan(const Geometry& before, RandomStream /*random*/) const override {
    const Size image = before.result();
    const Size part{std::min(image.width, scaled(image.height, size_.width, size_.height)),
                    std::min(image.height, scaled(image.width, size_.height, size_.width))};
    const auto crop =
        cropped(before, {(image.width - part.width) / 2, (image.height - part.height) / 2, part.width, part.height});
    return crop ? resized(*crop, size_) : std::nullopt;
  }

  void apply(Sample& sample, RandomStream random, Scratch& scratch) const override {
    apply_plan(*this, sample, random, scratch);
  }

 private:
  Size size_;
};

}  // namespace

std::shared_ptr<const Transform> fit(Size size) {
  if (size.width < 1 || size.height < 1 || size.width > kMostSide || size.height > kMostSide)
    throw ConfigError("Fit ", size.width, " x ", size.height, ": sizes are 1 to ", kMostSide);
  return std::make_shared<Fit>(size);
}

}  // namespace lockstep::image
