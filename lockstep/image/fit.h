// Fits images of any proportions into one size.
#pragma once

#include <memory>

#include "lockstep/image/transform.h"

namespace lockstep::image {

// The largest part in the middle that has the proportions of `size`, resized to it.
std::shared_ptr<const Transform> fit(Size size);

}  // namespace lockstep::image
