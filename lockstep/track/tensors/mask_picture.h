// Pictures of a network's masks, for people to look at.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/track/tensorboard_sink.h"

namespace lockstep::track {

// Side by side, with a column of white between: the image [C, H, W], stretched to all levels from black to white; the
// mask and the predicted one, [H, W] of class numbers, class 0 and negative ones black. Three channels are a colour
// image's; of others the first is shown in grey. Any device.
Picture mask_picture(const at::Tensor& image, const at::Tensor& mask, const at::Tensor& predicted);

}  // namespace lockstep::track
