// The arithmetic of the optimizers that scale each parameter's step by norms of the whole parameter, in the manner of
// kernels.h. Sums are added in fp64, over blocks of a parameter's memory in their order, in each by vectors: the number
// of threads does not matter, the width of the CPU's vectors does.
#pragma once

#include "lockstep/optim/kernels/kernels.h"
#include "lockstep/optim/kernels/layer_passes.h"

namespace lockstep::optim {

// One pass that reads the parameter and the multiplied, clipped gradient: their Σ².
SquareSums square_sums(const Operands& operands, double multiplier, const Extras& extras = {});

// One pass that reads such a gradient alone.
double gradient_square_sum(const at::Tensor& gradient, double multiplier, const Extras& extras = {});

// LAMB's first pass: moves the state, exp_avg and exp_avg_sq, and returns the Σ² of the parameter and of its update.
SquareSums step_lamb_moments(const LambRule& rule, const Operands& operands, const Extras& extras = {});

// Its second: parameter -= rate · update. The update is computed again, for that moves fewer bytes than to keep it.
void step_lamb(const LambRule& rule, double rate, const Operands& operands, const Extras& extras = {});

}  // namespace lockstep::optim
