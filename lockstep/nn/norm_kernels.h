// The vector code of batch_norm.h, on plain matrices of `columns` elements a row, stored row by row. A column is one
// channel, or one of several copies of it where rows were joined. The elements have one of three types; everything that
// belongs to a column is fp32, and its sums are fp64.
#pragma once

#include <cstddef>

#include "lockstep/nn/activation.h"

namespace lockstep::nn {

enum class Element { kFloat, kBrain, kHalf };  // fp32, bf16, fp16

struct Extent {
  Element element;
  size_t rows;
  size_t columns;
};

// The input of the activation: z = (x - mean) · scale + bias.
struct Affine {
  const float* mean;
  const float* scale;
  const float* bias;
};

// The inputs of g: dy where the activation lets it through, else 0. y tells which if it is there, else z does.
struct Gradient {
  const void* dy;
  const void* x;
  const void* y;  // or nullptr
  Affine affine;
  Activation activation;
};

// Two sums for each column, to which the kernels add. Sums over a few rows are fp32, over all rows fp64.
struct Sums {
  double* first;
  double* second;
};

// Adds the sums of x - shift and of its square.
void add_moments(const Extent& extent, const void* x, const float* shift, const Sums& sums);

// y = activation(z + residual). `residual` may be nullptr.
void normalise(const Extent& extent, const void* x, const void* residual, const Affine& affine, Activation activation,
               void* y);

// Adds the sums of g and of g · (x - mean). Writes g to `masked` unless that is nullptr.
void add_gradient_sums(const Extent& extent, const Gradient& gradient, void* masked, const Sums& sums);

// dx = g · scale + (x - mean) · slope + offset.
void input_gradient(const Extent& extent, const Gradient& gradient, const float* slope, const float* offset, void* dx);

}  // namespace lockstep::nn
