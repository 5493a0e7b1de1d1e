// Scales a learning rate that was found with another global batch. Pure functions.
#pragma once

#include <cstdint>

namespace lockstep::schedule {

// The factor for a rate found at `base` samples a step where a step has `global_batch`; both above 0. It is their
// ratio, for SGD (Goyal et al., "Accurate, large minibatch SGD", 2017).
double linear_lr_factor(int64_t global_batch, int64_t base);
// The root of their ratio, which keeps the variance of a step (Krizhevsky, "One weird trick", 2014); for Adam and its
// kin.
double sqrt_lr_factor(int64_t global_batch, int64_t base);

}  // namespace lockstep::schedule
