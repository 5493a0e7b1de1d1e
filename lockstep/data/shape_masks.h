// Several shapes and the mask that tells them apart: what the unet recipe trains on where no data is given.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

// 0 is the ground; a class for each of disc, square and triangle follows.
constexpr int kMaskClasses = 4;

struct ShapeMasksOptions {
  uint64_t seed = 0;
  int side = 64;  // pixels, from 16
  int64_t train_size = 512;
  int64_t test_size = 64;
};

// RGB images of two to five light shapes on a dark, textured ground, the later over the earlier, with their masks as
// targets: int64 [n, side, side], each pixel's class. Colours tell ground from shape, and no shape from another. A pure
// function of (seed, split, index), drawn anew whenever it is asked for. Throws ConfigError for sizes out of range.
Splits shape_masks(ShapeMasksOptions options = {});

// Draws one: [3, side, side], from 0 to 1, into `pixels`, and its [side, side] classes into `mask`. Splits are numbered
// 0 = train, 1 = test.
void draw_shape_mask(uint64_t seed, uint32_t split, uint64_t index, int side, std::span<float> pixels,
                     std::span<int64_t> mask);

}  // namespace lockstep::data
