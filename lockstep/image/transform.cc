#include "lockstep/image/transform.h"

#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::image {

std::optional<Geometry> Transform::plan(const Geometry& /*before*/, RandomStream /*random*/) const {
  return std::nullopt;
}

void apply_plan(const Transform& transform, Sample& sample, const RandomStream& random, Scratch& scratch) {
  std::optional<Geometry> geometry = transform.plan(whole(sample.image.size()), random);
  if (!geometry) throw BugError("the transform \"", transform.text(), "\" has no plan for a whole image");
  const Rect all = whole(sample.image.size()).source;
  scratch.resizer.resize(sample.image, all, *geometry, Filter::kBilinear, scratch.image);
  std::swap(sample.image, scratch.image);
  if (sample.mask.empty()) return;
  geometry->fill = 0;
  scratch.resizer.resize(sample.mask, all, *geometry, Filter::kNearest, scratch.mask);
  std::swap(sample.mask, scratch.mask);
}

}  // namespace lockstep::image
