// Affine maps of images, in fixed point: the same bits on every machine.
#pragma once

#include "lockstep/image/transform.h"

namespace lockstep::image {

// The place in the image of a place of the result: (x_x · x + x_y · y + x_0, y_x · x + y_y · y + y_0). Pixels have
// their centers at halves.
struct AffineMap {
  double x_x = 1, x_y = 0, x_0 = 0;
  double y_x = 0, y_y = 1, y_0 = 0;
};

// The map that turns the result by `degrees`, shears it along x by `shear` degrees and enlarges it by `scale`, about
// the image's center, and then moves it: torchvision's affine().
struct AffineParameters {
  double degrees = 0, translate_x = 0, translate_y = 0, scale = 1, shear = 0;
};
AffineMap affine_map(Size image, const AffineParameters& parameters);

// Writes the image of `in`, in its size. kBilinear mixes the four nearest pixels. Places outside become `fill`.
void warp(const Pixels& in, const AffineMap& map, Filter filter, uint8_t fill, Pixels& out);

// Maps an image bilinearly and its mask by nearest pixels, which class 0 fills.
void warp(Sample& sample, const AffineMap& map, uint8_t fill, Scratch& scratch);

}  // namespace lockstep::image
