// apex.fp16_utils.FP16_Optimizer: masters and a loss scale around an optimizer of 16-bit parameters.
//
//   fp16_utils::FP16_Optimizer optimizer(sgd, {.dynamic_loss_scale = true});
//   for (…) {
//     optimizer.zero_grad();
//     optimizer.backward(loss_of(net->forward(x)));
//     optimizer.clip_master_grads(1);
//     optimizer.step();
//   }
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <vector>

#include "lockstep/amp/master_weights.h"
#include "lockstep/compat/apex/fp16_loss_scaler.h"

namespace lockstep::apex::fp16_utils {

struct FP16OptimizerOptions {
  double static_loss_scale = 1;
  bool dynamic_loss_scale = false;  // true: static_loss_scale means nothing
  DynamicLossScalerOptions dynamic_loss_args = {};
};

// The state that a resume needs besides the model's and the wrapped optimizer's own.
struct FP16OptimizerState {
  lockstep::amp::ScalerDict loss_scaler;
  bool dynamic_loss_scale = false;
  bool overflow = false;
  std::vector<at::Tensor> fp32_from_fp16;  // copies of the masters
};

// Skips a step after an overflow, also under a static scale. One thread. The optimizer outlives it.
class FP16_Optimizer {
 public:
  // Replaces the optimizer's 16-bit parameters by fp32 masters. Throws ConfigError for an optimizer that has taken a
  // step.
  explicit FP16_Optimizer(torch::optim::Optimizer& init_optimizer, const FP16OptimizerOptions& options = {});

  // Runs backward of the scaled loss. If several losses come before a step, all calls but the last pass
  // update_master_grads = false.
  void backward(const at::Tensor& loss, bool update_master_grads = true);
  // Sets the masters' .grad to the gradients that backward left, unscaled and in fp32. From then until zero_grad(),
  // this and backward() throw ConfigError, since some gradients would be unscaled twice.
  void update_master_grads();
  // Clips the masters' gradients and returns their norm before, or -1 after an overflow.
  double clip_master_grads(double max_norm, double norm_type = 2);
  // Steps the masters, rounds them into the model and sets the next scale. After an overflow there is no step. Returns
  // whether it stepped. Throws ConfigError before update_master_grads().
  bool step();
  void zero_grad();

  bool overflow() const { return overflow_; }
  double loss_scale() const { return scaler_.loss_scale(); }
  void set_loss_scale(double scale);  // throws ConfigError unless it is above 0
  // Returns the gradients that the optimizer is about to step by, undefined where there is none.
  std::vector<at::Tensor> inspect_master_grad_data() const;

  FP16OptimizerState state_dict() const;
  // Copies the masters and rounds them into the model. Throws ConfigError, with nothing changed, for other masters.
  void load_state_dict(const FP16OptimizerState& state);

 private:
  void check_not_taken() const;

  torch::optim::Optimizer& optimizer_;
  bool dynamic_;
  LossScaler scaler_;
  lockstep::amp::MasterWeights masters_;
  bool taken_ = false;     // the masters have their gradients
  bool overflow_ = false;  // the last gradients that were taken were not finite
};

}  // namespace lockstep::apex::fp16_utils
