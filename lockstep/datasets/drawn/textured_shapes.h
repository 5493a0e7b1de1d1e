// Textured shapes drawn on demand: what the imagenet recipe trains on where no data is given.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/data/dataset.h"

namespace lockstep::datasets {

constexpr int kTexturedClasses = 10;

struct TexturedShapesOptions {
  uint64_t seed = 0;
  int side = 64;  // pixels, from 16
  int64_t train_size = 5120;
  int64_t test_size = 320;
};

// RGB images of one shape on a textured ground. Disc, square, triangle, cross and ring, each in stripes or checks, make
// 10 classes; neither colours nor positions nor the ground tell the class. Sample i has class i mod 10. All else is a
// pure function of (seed, split, index) and drawn anew at each request. Throws ConfigError for sizes out of range.
data::Splits textured_shapes(TexturedShapesOptions options = {});

// Draws one sample: [3, side, side], from 0 to 1, into `pixels`. Returns its class. Splits are numbered 0 = train, 1 =
// test.
int64_t draw_textured_shape(uint64_t seed, uint32_t split, uint64_t index, int side, std::span<float> pixels);

}  // namespace lockstep::datasets
