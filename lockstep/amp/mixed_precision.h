// Mixed precision for the models and optimizers of a hand-written training loop, made before DistributedDataParallel.
//
//   amp::MixedPrecision mixed({net.get()}, {&optimizer}, {.opt_level = amp::OptLevel::kO2});
//   parallel::DistributedDataParallel ddp(net.ptr(), world);
//   for (…) {
//     const auto result = ddp.run(number, batch, [&](const auto& lane) {
//       return loss_of(mixed.forward([&] { return net->forward(lane.data); }), lane.target);
//     }, mixed.loss_scale());
//     mixed.step(optimizer, result);
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
  // DistributedDataParallel and before any step. Throws ConfigError, with nothing changed, for models that are already
  // in 16 bits, wrapped or cast by another MixedPrecision, for models on different devices, for optimizers over
  // parameters that no model has, and for options that do not go together.
  MixedPrecision(const std::vector<torch::nn::Module*>& models, const std::vector<torch::optim::Optimizer*>& optimizers,
                 const Options& options);

  const Policy& policy() const { return policy_; }

  // Returns the scope for a forward pass. forward() opens it itself, and casts the output.
  AutocastScope autocast() const { return AutocastScope(policy_, device_.type()); }
  // Casts a floating-point output to cast_model_outputs. If that is unset, a level with casts gives fp32, for a loss
  // that is computed outside, and one without leaves the output.
  at::Tensor cast_outputs(const at::Tensor& output) const;
  // Casts a floating-point input to the model's dtype if the level casts the model. A model whose operations are not
  // cast needs it.
  at::Tensor cast_inputs(const at::Tensor& input) const;
  template <typename Forward>
  at::Tensor forward(Forward&& run) const {
    const AutocastScope scope = autocast();
    return cast_outputs(run());
  }

  // Steps the optimizer and sets the next scale. `gradients`: what DistributedDataParallel::run has returned, which was
  // given loss_scale(loss_id). Optimizers of lockstep/optim take one pass over memory. Skips the step if a gradient was
  // not finite. Throws ConfigError for gradients of another scale.
  StepReport step(torch::optim::Optimizer& optimizer, const FoldedGradients& gradients, const StepOptions& options = {},
                  int loss_id = 0) {
    return step(std::vector{&optimizer}, gradients, options, loss_id);
  }
  // Steps several optimizers. One loss gave their gradients, and `gradients` is of all of them together.
  StepReport step(const std::vector<torch::optim::Optimizer*>& optimizers, const FoldedGradients& gradients,
                  const StepOptions& options = {}, int loss_id = 0);
  void zero_grad(torch::optim::Optimizer& optimizer) { find(optimizer).zero_grad(); }

  double loss_scale(int loss_id = 0) const { return scaler(loss_id).scale(); }
  // Throws ConfigError for a loss_id that num_losses does not allow.
  const LossScaler& scaler(int loss_id = 0) const;
  LossScaler& scaler(int loss_id);
  int num_losses() const { return options_.num_losses; }

  // Returns the tensors that the optimizer steps: fp32 masters at O2, elsewhere its parameters. Masters of
  // lockstep/optim's optimizers have no .grad; clip by step()'s options instead.
  std::vector<at::Tensor> master_params(const torch::optim::Optimizer& optimizer) const {
    return find(optimizer).stepped();
  }
  // Loads masters for a resume, as MixedOptimizer::load_masters() does.
  void load_masters(torch::optim::Optimizer& optimizer, const std::vector<at::Tensor>& masters) {
    find(optimizer).load_masters(masters);
  }

  // All optimizers' masters by the model's weight, and the way back: see MixedOptimizer.
  MastersByWeight masters_by_weight() const;
  void load_masters_by_weight(const MastersByWeight& values);

  // Returns the place of an optimizer in the list that the constructor took; find() returns its MixedOptimizer. Throws
  // ConfigError for one that was not in the list.
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
