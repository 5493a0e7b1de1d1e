// The pipelines that --augment names.
#pragma once

#include "lockstep/datasets/image_setup.h"
#include "lockstep/datasets/open_options.h"

namespace lockstep::datasets {

// Photographs of any size, as torchvision trains and evaluates on them: standard is RandomResizedCrop and a flip,
// strong adds RandAugment and RandomErasing; evaluation resizes to 256 of 224 and takes the middle.
ImageSetup photograph_setup(const OpenOptions& options);

// Images of one small size, such as CIFAR's 32 x 32: standard is a crop after padding by an eighth, and a flip;
// evaluation takes them whole.
ImageSetup small_image_setup(const OpenOptions& options, image::Size stored, const image::Normalize& normalize);

// The sides of an image whose shorter one becomes `shorter`, both rounded to a multiple of 16, as U-Net needs.
image::Size sides_like(image::Size image, int shorter);
// The same with the shorter side that the options ask for.
image::Size sides_like(image::Size image, const OpenOptions& options);

// Images with masks, of the size `result`: standard flips both ways and takes a part of at least half an image, strong
// adds RandAugment; evaluation takes the largest part in the middle. Values are from 0 to 1. With options.crop training
// takes squares of such sides anywhere in the result, and standard lays them down in all eight ways. Throws ConfigError
// for a crop that is larger than the result.
ImageSetup pair_setup(const OpenOptions& options, image::Size result);

}  // namespace lockstep::datasets
