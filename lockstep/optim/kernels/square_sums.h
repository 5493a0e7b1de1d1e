// The squared norms of a whole parameter and of its gradient, by which some rules scale its step.
//
// Sums are fp64: vectors add within a block of the parameter's memory, and the blocks are added in their order. The
// number of threads therefore does not matter; the width of the CPU's vectors does.
#pragma once

#include "lockstep/optim/kernels/elements.h"
#include "lockstep/optim/kernels/operands.h"

namespace lockstep::optim {

struct SquareSums {
  double weight = 0;
  double other = 0;  // of the gradient, or of the update
  SquareSums& operator+=(const SquareSums& more) {
    weight += more.weight;
    other += more.other;
    return *this;
  }
};

// Σ weight² and Σ gradient², the gradient multiplied and clipped, in one pass. On the CPU alone, as the next.
SquareSums square_sums(const Operands& operands, double multiplier, const Extras& extras = {});

// Σ gradient² alone, in one pass over the gradient.
double gradient_square_sum(const at::Tensor& gradient, double multiplier, const Extras& extras = {});

}  // namespace lockstep::optim
