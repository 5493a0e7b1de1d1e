// Random rotation, translation, scaling and shear, as torchvision's RandomAffine.
#pragma once

#include <memory>

#include "lockstep/image/transform.h"

namespace lockstep::image {

struct AffineOptions {
  double degrees = 0;                       // rotation, from -degrees to degrees
  double translate_x = 0, translate_y = 0;  // at most these shares of width and height, either way
  double scale_low = 1, scale_high = 1;
  double shear = 0;  // degrees along x, either way; at most 89
  uint8_t fill = 0;  // masks: class 0
};
// Images are interpolated bilinearly, where torchvision takes the nearest pixel unless told otherwise; of masks the
// nearest pixel is taken.
std::shared_ptr<const Transform> random_affine(const AffineOptions& options);

}  // namespace lockstep::image
