// Models and their optimizers in mixed precision: what a training loop of one's own makes before
// DistributedDataParallel.
//
//   amp::MixedPrecision mixed({net.get()}, {&optimizer}, {.opt_level = amp::OptLevel::kO2});
//   parallel::DistributedDataParallel ddp(net.ptr(), world);
//   for (…) {
//     const auto result = ddp.run(number, batch, [&](const auto& lane) {
//       return loss_of(mixed.forward([&] { return net->forward(lane.data); }), lane.target);
//     }, mixed.loss_scale());
//     mixed.step(optimizer, result.square_sum);
//     mixed.zero_grad(optimizer);
//   }
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <vector>

#include "lockstep/amp/autocast.h"
#include "lockstep/amp/fused_step.h"
#include "lockstep/amp/loss_scaler.h"
#include "lockstep/amp/mixed_optimizer.h"
#include "lockstep/amp/model_checks.h"
#include "lockstep/amp/opt_level.h"

namespace lockstep::amp {

// One thread. Models and optimizers outlive it.
class MixedPrecision {
 public:
  // Casts the models and gives the optimizers masters, as the level says (opt_level.h). Comes before
  // DistributedDataParallel and before any step. Throws ConfigError, with nothing changed, for models that are in 16
  // bits, wrapped or cast by another MixedPrecision already, or on another device than each other, for optimizers over
  // parameters that no model has, and for options that do not go together.
  MixedPrecision(const std::vector<torch::nn::Module*>& models, const std::vector<torch::optim::Optimizer*>& optimizers,
                 const Options& options);

  const Policy& policy() const { return policy_; }

  // The scope that a forward pass runs in. forward() opens it, and casts what the pass returns.
  AutocastScope autocast() const { return AutocastScope(policy_, device_.type()); }
  // A floating-point output becomes cast_model_outputs, or fp32 for a loss that is computed outside. A level without
  // casts leaves it.
  at::Tensor cast_outputs(const at::Tensor& output) const;
  // A floating-point input becomes the model's dtype: for a model that is cast and whose operations are not.
  at::Tensor cast_inputs(const at::Tensor& input) const;
  template <typename Forward>
  at::Tensor forward(Forward&& run) const {
    const AutocastScope scope = autocast();
    return cast_outputs(run());
  }

  // Steps by gradients that loss_scale(loss_id) has scaled and a fold has measured, and sets the next scale. Optimizers
  // of lockstep/optim take one pass over memory. Skips the step if a gradient was not finite.
  StepReport step(torch::optim::Optimizer& optimizer, double square_sum, const StepOptions& options = {},
                  int loss_id = 0) {
    return step(std::vector{&optimizer}, square_sum, options, loss_id);
  }
  // Steps several optimizers whose gradients one loss gave and `square_sum` counts together.
  StepReport step(const std::vector<torch::optim::Optimizer*>& optimizers, double square_sum,
                  const StepOptions& options = {}, int loss_id = 0);
  void zero_grad(torch::optim::Optimizer& optimizer) { find(optimizer).zero_grad(); }

  double loss_scale(int loss_id = 0) const { return scaler(loss_id).scale(); }
  // Throws ConfigError for a loss_id that num_losses does not allow.
  const LossScaler& scaler(int loss_id = 0) const;
  LossScaler& scaler(int loss_id);
  int num_losses() const { return options_.num_losses; }

  // What the optimizer steps: fp32 masters at O2, elsewhere its parameters. Masters of lockstep/optim's optimizers have
  // no .grad: clip by step()'s options.
  std::vector<at::Tensor> master_params(const torch::optim::Optimizer& optimizer) const {
    return find(optimizer).stepped();
  }
  // For a resume: as MixedOptimizer::load_masters().
  void load_masters(torch::optim::Optimizer& optimizer, const std::vector<at::Tensor>& masters) {
    find(optimizer).load_masters(masters);
  }

  // The place of an optimizer in the list that the constructor took, and what is kept for it. Throws ConfigError for
  // one that was not among them.
  size_t index_of(const torch::optim::Optimizer& optimizer) const;
  MixedOptimizer& find(const torch::optim::Optimizer& optimizer) { return optimizers_[index_of(optimizer)]; }
  const MixedOptimizer& find(const torch::optim::Optimizer& optimizer) const {
    return optimizers_[index_of(optimizer)];
  }

 private:
  Options options_;
  Policy policy_;
  at::Device device_;
  InitializedModels initialized_;
  std::vector<LossScaler> scalers_;
  std::vector<MixedOptimizer> optimizers_;
};

}  // namespace lockstep::amp
