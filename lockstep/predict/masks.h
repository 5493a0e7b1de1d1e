// Masks that a network has made of images, as pictures.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lockstep/image/pixels.h"

namespace lockstep::predict {

constexpr int64_t kMostClasses = 256;

// The class of each pixel of an image of this size, by scores [classes, h, w] of any floating-point type: they are
// scaled to it (bilinear), and the highest one counts; of a network of one class, 1 where its score is positive. One
// channel. Throws BugError for more than kMostClasses.
image::Pixels classes_of(const at::Tensor& scores, image::Size size);

// A mask to look at: class 0 is black, the last one white, the others lie evenly between.
image::Pixels to_grey(const image::Pixels& classes, int64_t count);

// The image, of three channels, with each class but the first in a colour over it.
image::Pixels overlay(const image::Pixels& image, const image::Pixels& classes);

}  // namespace lockstep::predict
