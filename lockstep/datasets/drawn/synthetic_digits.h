// Digits drawn on demand: what the MNIST recipe trains on where no data is given.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/data/dataset.h"

namespace lockstep::datasets {

struct SyntheticDigitsOptions {
  uint64_t seed = 0;
  int64_t train_size = 60000;
  int64_t test_size = 10000;
};

// Handwriting-like digits in MNIST's form (28×28 grey pixels, 10 classes). Each is a pure function of (seed, split,
// index) and drawn anew at each request, so the sets take no memory. A linear model reads four fifths of them, LeNet
// nearly all.
data::Splits synthetic_digits(SyntheticDigitsOptions options = {});

// Draws one digit: 784 pixels from 0 to 1 into `pixels`. Returns its label. Splits are numbered 0 = train, 1 = test.
int64_t draw_digit(uint64_t seed, uint32_t split, uint64_t index, std::span<float, 784> pixels);

}  // namespace lockstep::datasets
