// A few operations, chosen for each image at random, as torchvision's RandAugment.
#pragma once

#include <memory>

#include "lockstep/image/transform.h"

namespace lockstep::image {

// `operations` of the fourteen, each with the strength `magnitude` of 0 to 30. Those of geometry move masks as well,
// and interpolate images bilinearly, where torchvision takes the nearest pixel unless told otherwise.
std::shared_ptr<const Transform> rand_augment(int operations = 2, int magnitude = 9);

}  // namespace lockstep::image
