// Random brightness, contrast, saturation and hue, as torchvision's ColorJitter.
#pragma once

#include <memory>

#include "lockstep/image/transform.h"

namespace lockstep::image {

struct ColourJitterOptions {
  double brightness = 0, contrast = 0, saturation = 0;  // factors from max(0, 1 - x) to 1 + x
  double hue = 0;                                       // turns from -x to x; at most 0.5
};
// The four are done in a random order. Saturation and hue leave grey images as they are; masks stay.
std::shared_ptr<const Transform> colour_jitter(const ColourJitterOptions& options);

}  // namespace lockstep::image
