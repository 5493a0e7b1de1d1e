// apex.parallel.LARC (You et al., "Large batch training of convolutional networks", 2017) around any optimizer: each
// parameter's rate is trust_coefficient · ‖parameter‖ / (‖gradient‖ + weight_decay · ‖parameter‖ + eps), either as a
// bound on the optimizer's rate (clip) or as a factor of it. For SGD the latter is optim::Lars, in fewer passes.
#pragma once

#include <torch/optim/optimizer.h>

namespace lockstep::apex::parallel {

struct LarcOptions {
  double trust_coefficient = 0.02;
  bool clip = true;  // the rate is min(lr, the ratio); false: lr times the ratio
  double eps = 1e-8;
};

// One thread. The optimizer outlives it.
class LARC {
 public:
  // Throws ConfigError for options out of range.
  explicit LARC(torch::optim::Optimizer& optimizer, const LarcOptions& options = {});

  // Adds the weight decay to the gradients and multiplies them by the ratio, in place, then steps the optimizer without
  // its own weight decay. A parameter or a gradient of norm 0 leaves the gradient as it is. Throws ConfigError for a
  // group of an optimizer other than Lockstep's and libtorch's Adagrad, Adam, AdamW, RMSprop and SGD.
  void step();
  void zero_grad() { optimizer_.zero_grad(); }

 private:
  void scale_gradients(const torch::optim::OptimizerParamGroup& group, double weight_decay) const;

  torch::optim::Optimizer& optimizer_;
  LarcOptions options_;
};

}  // namespace lockstep::apex::parallel
