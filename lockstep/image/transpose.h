// A random share of the images with rows and columns exchanged.
#pragma once

#include <memory>

#include "lockstep/image/transform.h"

namespace lockstep::image {

// Pixel (x, y) becomes (y, x): with both flips (flips.h) all eight ways to lay down a square. An image that isn't
// square changes its size. It has no plan, so that it comes after the transforms that do. Throws ConfigError for a
// share that isn't 0 to 1.
std::shared_ptr<const Transform> transpose(double share = 0.5);

}  // namespace lockstep::image
