// The vector code of layer_kernels.h, in the manner of passes.h.
#pragma once

#include "lockstep/optim/kernels/passes.h"

namespace lockstep::optim {

// LAMB's update is exp_avg / correction, over √exp_avg_sq / root_correction + eps, plus decoupled_decay · weight.
struct LambRule {
  double multiplier;
  double weight_decay;     // added to the gradient
  double decoupled_decay;  // added to the update
  double beta1;
  double new_share;  // of the gradient in exp_avg
  double beta2;
  double correction;       // 1 - beta1^step
  double root_correction;  // √(1 - beta2^step)
  double eps;
};

struct SquareSums {
  double weight = 0;
  double other = 0;  // of the gradient, or of the update
  SquareSums& operator+=(const SquareSums& more) {
    weight += more.weight;
    other += more.other;
    return *this;
  }
};

// Σ weight² and Σ gradient², the gradient multiplied and clipped; both in fp64.
SquareSums run_square_sums(double multiplier, double clip, const AnyElements& elements);

// The latter alone.
double run_gradient_square_sum(double multiplier, double clip, const AnyElements& elements);

// Moves state[0], exp_avg, and state[1], exp_avg_sq; returns Σ weight² and Σ update².
SquareSums run_lamb_moments(const LambRule& rule, double clip, const AnyElements& elements);

// Then weight -= rate · update, from the state; the gradient is not read.
void run_lamb_step(const LambRule& rule, double rate, double average_share, const AnyElements& elements);

}  // namespace lockstep::optim
