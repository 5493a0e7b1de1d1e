// Flips of a random share of the images.
#pragma once

#include <memory>

#include "lockstep/image/transform.h"

namespace lockstep::image {

std::shared_ptr<const Transform> flip_x(double share = 0.5);  // left and right change places
std::shared_ptr<const Transform> flip_y(double share = 0.5);

}  // namespace lockstep::image
