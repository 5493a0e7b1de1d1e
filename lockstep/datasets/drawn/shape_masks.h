// Images of several shapes, with the masks that segment them: what the unet recipe trains on where no data is given.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/data/dataset.h"

namespace lockstep::datasets {

// Class 0 is the ground; disc, square and triangle follow.
constexpr int kMaskClasses = 4;

struct ShapeMasksOptions {
  uint64_t seed = 0;
  int side = 64;  // pixels, from 16
  int64_t train_size = 512;
  int64_t test_size = 64;
};

// RGB images of two to five light shapes on a dark, textured ground, later shapes over earlier ones. The targets are
// their masks: int64 [n, side, side], each pixel's class. Colours tell shapes from the ground, but not from each other.
// Samples are pure functions of (seed, split, index) and drawn anew at each request. Throws ConfigError for sizes out
// of range.
data::Splits shape_masks(ShapeMasksOptions options = {});

// Draws one sample: [3, side, side], from 0 to 1, into `pixels`, and its classes [side, side] into `mask`. Splits are
// numbered 0 = train, 1 = test.
void draw_shape_mask(uint64_t seed, uint32_t split, uint64_t index, int side, std::span<float> pixels,
                     std::span<int64_t> mask);

}  // namespace lockstep::datasets
