// Tensors as pixels, for people to look at.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/image/pixels.h"

namespace lockstep::track {

// An image [C, H, W] of any type and device in colours, stretched to all levels from black to white. Three channels are
// a colour image's; of others the first is shown in grey. Numbers that are not finite are black.
image::Pixels image_pixels(const at::Tensor& image);

// A mask [H, W] of class numbers as one channel of them. Negative ones are class 0, those from 249 on others of the
// same colour (image/class_colours.h).
image::Pixels class_pixels(const at::Tensor& mask);

}  // namespace lockstep::track
