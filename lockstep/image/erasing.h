// Erases a rectangle of a random share of the images, as torchvision's RandomErasing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "lockstep/image/transform.h"

namespace lockstep::image {

struct ErasingOptions {
  double share = 0.5;
  double scale_low = 0.02, scale_high = 0.33;   // of the image's area
  double ratio_low = 0.3, ratio_high = 3.3;     // of height to width
  std::array<uint8_t, 3> value{124, 116, 104};  // ImageNet's mean, which normalising makes 0 (torchvision's is 0)
  bool noise = false;                           // random values in place of `value`
};
// Masks stay.
std::shared_ptr<const Transform> random_erasing(const ErasingOptions& options = {});

}  // namespace lockstep::image
