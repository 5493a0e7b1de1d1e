#include "lockstep/image/transpose.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/image/orientation.h"

namespace lockstep::image {
namespace {

class Transpose final : public Transform {
 public:
  explicit Transpose(double share) : share_(share) {}
  std::string text() const override { return cat("transpose ", share_); }
  Slot slot() const override { return Slot::kTranspose; }

  void apply(Sample& sample, RandomStream random, Scratch& scratch) const override {
    if (random.uniform() >= share_) return;
    exchange(sample.image, scratch.image);
    if (sample.mask.size() != Size{}) exchange(sample.mask, scratch.mask);
  }

 private:
  static void exchange(Pixels& pixels, Pixels& scratch) {
    constexpr int kTransposed = 5;  // of EXIF
    turn(pixels, {0, 0, pixels.width(), pixels.height()}, kTransposed, scratch);
    std::swap(pixels, scratch);
  }
  double share_;
};

}  // namespace

std::shared_ptr<const Transform> transpose(double share) {
  if (!(share >= 0 && share <= 1)) throw ConfigError("transpose ", share, ": the share of images is 0 to 1");
  return std::make_shared<Transpose>(share);
}

}  // namespace lockstep::image
