// Crops and resizes, as torchvision's of these names.
#pragma once

#include <memory>

#include "lockstep/image/transform.h"

namespace lockstep::image {

struct ResizedCropOptions {
  double scale_low = 0.08, scale_high = 1;           // of the image's area
  double ratio_low = 3.0 / 4, ratio_high = 4.0 / 3;  // of width to height
};
std::shared_ptr<const Transform> random_resized_crop(Size size, const ResizedCropOptions& options = {});

// The shorter side becomes `pixels`, the longer one as torchvision rounds it. Planning throws DataError if that has
// more than kMostSide.
std::shared_ptr<const Transform> resize_shorter(int pixels);
std::shared_ptr<const Transform> resize_to(Size size);

// The middle; a smaller image is filled up with zeros around it.
std::shared_ptr<const Transform> center_crop(Size size);

// A part anywhere in the image after `padding` zeros were put on each side, and more where it would still be too small.
std::shared_ptr<const Transform> random_crop(Size size, int padding = 0);

}  // namespace lockstep::image
