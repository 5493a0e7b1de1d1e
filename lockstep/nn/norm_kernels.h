// The vector code of batch_norm.h, on plain matrices: rows of `columns` elements, one row after the other. A column is
// one channel, or one of several copies of it where rows were joined.
#pragma once

#include <cstddef>

#include "lockstep/nn/activation.h"

namespace lockstep::nn {

// Of the matrices; everything that a column has is fp32, and its sums are fp64.
enum class Element { kFloat, kBrain, kHalf };  // fp32, bf16, fp16

struct Extent {
  Element element;
  size_t rows;
  size_t columns;
};

// What is before the activation: z = (x - mean) · scale + bias.
struct Affine {
  const float* mean;
  const float* scale;
  const float* bias;
};

// What a gradient is made from. g is dy where the activation lets it through, by y where there is one, else by z.
struct Gradient {
  const void* dy;
  const void* x;
  const void* y;  // or nullptr
  Affine affine;
  Activation activation;
};

// Two sums for each column, which the kernels add to. Sums of a few rows are fp32, of all of them fp64.
struct Sums {
  double* first;
  double* second;
};

// Adds x - shift and its square.
void add_moments(const Extent& extent, const void* x, const float* shift, const Sums& sums);

// y = activation(z + residual); no residual: nullptr.
void normalise(const Extent& extent, const void* x, const void* residual, const Affine& affine, Activation activation,
               void* y);

// Adds g and g · (x - mean); writes g to `masked` unless it is nullptr.
void add_gradient_sums(const Extent& extent, const Gradient& gradient, void* masked, const Sums& sums);

// dx = g · scale + (x - mean) · slope + offset.
void input_gradient(const Extent& extent, const Gradient& gradient, const float* slope, const float* offset, void* dx);

}  // namespace lockstep::nn
