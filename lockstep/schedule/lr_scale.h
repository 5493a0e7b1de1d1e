// Learning rates for other global batches than the one that a rate was found with. Pure functions.
#pragma once

#include <cstdint>

namespace lockstep::schedule {

// What a rate for `base` samples a step is multiplied by where a step has `global_batch`; both above 0.
// Linear: their ratio (Goyal et al., "Accurate, large minibatch SGD", 2017), for SGD.
double linear_lr_factor(int64_t global_batch, int64_t base);
// Its root (Krizhevsky, "One weird trick", 2014), which keeps the variance of a step; for Adam and its kin as well.
double sqrt_lr_factor(int64_t global_batch, int64_t base);

}  // namespace lockstep::schedule
