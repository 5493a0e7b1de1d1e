// The arithmetic of optimizers that scale each parameter's step by norms of the whole parameter, by passes as in
// kernels.h. Sums are fp64: vectors add within a block of the parameter's memory, and the blocks are added in their
// order. The number of threads therefore does not matter; the width of the CPU's vectors does.
#pragma once

#include "lockstep/optim/kernels/kernels.h"
#include "lockstep/optim/kernels/layer_passes.h"

namespace lockstep::optim {

// Σ² of the parameter and of the multiplied, clipped gradient, in one pass.
SquareSums square_sums(const Operands& operands, double multiplier, const Extras& extras = {});

// Σ² of the multiplied, clipped gradient alone, in one pass.
double gradient_square_sum(const at::Tensor& gradient, double multiplier, const Extras& extras = {});

// LAMB's first pass: moves the state, exp_avg and exp_avg_sq, and returns the Σ² of the parameter and of its update.
SquareSums step_lamb_moments(const LambRule& rule, const Operands& operands, const Extras& extras = {});

// Its second: parameter -= rate · update. The update is computed again, for that moves fewer bytes than to keep it.
void step_lamb(const LambRule& rule, double rate, const Operands& operands, const Extras& extras = {});

}  // namespace lockstep::optim
