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

// What a resume needs besides the model's and the wrapped optimizer's own state.
struct FP16OptimizerState {
  lockstep::amp::ScalerDict loss_scaler;
  bool dynamic_loss_scale = false;
  bool overflow = false;
  std::vector<at::Tensor> fp32_from_fp16;  // copies of the masters
};

// Steps are left out after an overflow under a static scale, too. One thread. The optimizer outlives it.
class FP16_Optimizer {
 public:
  // Puts fp32 masters in the places of the optimizer's 16-bit parameters. Throws ConfigError for an optimizer that has
  // taken a step.
  explicit FP16_Optimizer(torch::optim::Optimizer& init_optimizer, const FP16OptimizerOptions& options = {});

  // Backward of the scaled loss. Of several losses before a step all but the last pass update_master_grads = false.
  void backward(const at::Tensor& loss, bool update_master_grads = true);
  // The masters' .grad become the gradients that backward left, unscaled and in fp32. Between this and zero_grad() both
  // throw ConfigError, for some gradients would be unscaled twice.
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
  // The gradients that the optimizer is about to step by, undefined where there is none.
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
  bool settled_ = false;   // the masters are what they are to be
  bool overflow_ = false;  // the last gradients that were taken were not finite
};

}  // namespace lockstep::apex::fp16_utils
