#include "lockstep/image/flips.h"

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

class Flip : public Transform {
 public:
  Flip(Slot slot, double share) : slot_(slot), share_(share) {}
  std::string text() const override { return cat(slot_ == Slot::kFlipX ? "flip " : "flip upside down ", share_); }
  Slot slot() const override { return slot_; }

  std::optional<Geometry> plan(const Geometry& before, RandomStream random) const override {
    if (random.uniform() >= share_) return before;
    return slot_ == Slot::kFlipX ? flipped_x(before) : flipped_y(before);
  }
  void apply(Sample& sample, RandomStream random, Scratch& scratch) const override {
    apply_plan(*this, sample, random, scratch);
  }

 private:
  Slot slot_;
  double share_;
};

std::shared_ptr<const Transform> make(Slot slot, double share) {
  if (!(share >= 0 && share <= 1)) throw ConfigError("flip ", share, ": the share of images is 0 to 1");
  return std::make_shared<Flip>(slot, share);
}

}  // namespace

std::shared_ptr<const Transform> flip_x(double share) { return make(Slot::kFlipX, share); }
std::shared_ptr<const Transform> flip_y(double share) { return make(Slot::kFlipY, share); }

}  // namespace lockstep::image
