// Apex's amp: initialize() makes a model and its optimizers compute in mixed precision, scale_loss() and step() are the
// two other lines of a loop.
//
//   auto amp = amp::initialize(*net, optimizer, {.opt_level = amp::OptLevel::kO2});   // before DistributedDataParallel
//   for (…) {
//     const at::Tensor loss = loss_of(amp->forward([&] { return net->forward(x); }));
//     {
//       const auto scaled = amp->scale_loss(loss, optimizer);
//       scaled.backward();
//     }
//     amp->step(optimizer);
//     amp->zero_grad(optimizer);
//   }
//
// With DistributedDataParallel::run, which scales and folds: amp->step(optimizer, result.square_sum).
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/amp/autocast.h"
#include "lockstep/amp/fused_step.h"
#include "lockstep/amp/loss_scaler.h"
#include "lockstep/amp/master_weights.h"
#include "lockstep/amp/model_checks.h"
#include "lockstep/amp/opt_level.h"

namespace lockstep::optim {
class FusedOptimizer;
}

namespace lockstep::amp {

class Amp;

struct ScaleLossOptions {
  int loss_id = 0;             // which of num_losses
  bool delay_unscale = false;  // gradients stay scaled: of all backward passes of an accumulation but the last
};

// While it lives, a loss is scaled: call its backward(), once. Its end unscales the gradients, looks whether they are
// finite and sets the next scale; what goes wrong there throws.
class ScaledLoss {
 public:
  ScaledLoss(Amp& amp, at::Tensor loss, std::vector<torch::optim::Optimizer*> optimizers, ScaleLossOptions options);
  ~ScaledLoss() noexcept(false);
  ScaledLoss(const ScaledLoss&) = delete;
  ScaledLoss& operator=(const ScaledLoss&) = delete;

  const at::Tensor& loss() const { return loss_; }  // scaled
  void backward() const { loss_.backward(); }

 private:
  Amp& amp_;
  at::Tensor loss_;
  std::vector<torch::optim::Optimizer*> optimizers_;
  ScaleLossOptions options_;
  int exceptions_ = std::uncaught_exceptions();
};

// One thread. Models and optimizers outlive it.
class Amp {
 public:
  // As initialize().
  Amp(const std::vector<torch::nn::Module*>& models, const std::vector<torch::optim::Optimizer*>& optimizers,
      const Options& options);

  const Policy& policy() const { return policy_; }

  // What a forward pass runs in; see AutocastScope. forward() does so, and casts what it returns, unless the level
  // casts nothing: to cast_model_outputs, or to fp32 for a loss that is computed outside.
  AutocastScope autocast() const { return AutocastScope(policy_, device_.type()); }
  at::Tensor cast_outputs(const at::Tensor& output) const;
  // For a model that is cast and whose operations are not: floating-point inputs in the model's dtype.
  at::Tensor cast_inputs(const at::Tensor& input) const;
  template <typename Forward>
  at::Tensor forward(Forward&& run) const {
    const AutocastScope scope = autocast();
    return cast_outputs(run());
  }

  ScaledLoss scale_loss(const at::Tensor& loss, torch::optim::Optimizer& optimizer, ScaleLossOptions options = {}) {
    return ScaledLoss(*this, loss, {&optimizer}, options);
  }
  ScaledLoss scale_loss(const at::Tensor& loss, std::vector<torch::optim::Optimizer*> optimizers,
                        ScaleLossOptions options = {}) {
    return ScaledLoss(*this, loss, std::move(optimizers), options);
  }

  // After scale_loss: the optimizer's step, unless a gradient was not finite. Clips first (also of fp32 masters).
  StepReport step(torch::optim::Optimizer& optimizer, const StepOptions& options = {});
  // The same of gradients that were scaled by loss_scale(loss_id) and folded, in one pass where the optimizer is one of
  // lockstep/optim.
  StepReport step(torch::optim::Optimizer& optimizer, double square_sum, const StepOptions& options = {},
                  int loss_id = 0) {
    return step(std::vector{&optimizer}, square_sum, options, loss_id);
  }
  // Of several optimizers whose gradients that loss gave and `square_sum` counts together.
  StepReport step(const std::vector<torch::optim::Optimizer*>& optimizers, double square_sum,
                  const StepOptions& options = {}, int loss_id = 0);
  void zero_grad(torch::optim::Optimizer& optimizer);

  double loss_scale(int loss_id = 0) const { return scaler(loss_id).scale(); }
  const LossScaler& scaler(int loss_id = 0) const { return scalers_[index_of(loss_id)]; }

  // What the optimizer steps: fp32 masters at O2, elsewhere its parameters. Masters of lockstep/optim's optimizers have
  // no .grad: clip by step()'s options.
  std::vector<at::Tensor> master_params(const torch::optim::Optimizer& optimizer) const;
  // For a resume: as many as master_params(), copied into the masters, and rounded into the model. At the first step
  // masters otherwise begin with the model's weights as they are then, broadcast or loaded.
  void load_masters(torch::optim::Optimizer& optimizer, const std::vector<at::Tensor>& masters);

  // Apex's form, {"loss_scaler0": {"loss_scale", "unskipped"}, …}, with torch's keys beside, and with "opt_level" (2)
  // and "half" (0) in the first, which Apex passes over. load_state_dict throws ConfigError for another level's state
  // or other numbers of losses; one without "opt_level", Apex's own, is taken at any.
  std::map<std::string, ScalerDict> state_dict() const;
  void load_state_dict(const std::map<std::string, ScalerDict>& state);

 private:
  friend class ScaledLoss;
  struct OfOptimizer {
    torch::optim::Optimizer* optimizer = nullptr;
    optim::FusedOptimizer* fused = nullptr;  // the same, of lockstep/optim
    std::optional<MasterWeights> masters = {};
    double scaled_by = 1;                  // what its gradients are
    bool delayed = false;                  // and are to stay so until a scope unscales them
    bool skip = false;                     // its next step
    bool settled = false;                  // its masters are what they are to be
    std::vector<at::Tensor> stashed = {};  // gradients of losses before, by parameter
    double stashed_by = 1;                 // what those are scaled by
  };

  void enter(const std::vector<torch::optim::Optimizer*>& optimizers, const ScaleLossOptions& options);
  void leave(const std::vector<torch::optim::Optimizer*>& optimizers, const ScaleLossOptions& options);
  bool unscale(OfOptimizer& of) const;
  void add_stashed(OfOptimizer& of) const;
  void settle_masters(OfOptimizer& of) const;
  void apply(OfOptimizer& of, const optim::Update& update) const;
  bool keeps_scaled(const OfOptimizer& of) const;
  const OfOptimizer& find(const torch::optim::Optimizer& optimizer) const;
  OfOptimizer& find(const torch::optim::Optimizer& optimizer);
  size_t index_of(int loss_id) const;

  Options options_;
  Policy policy_;
  at::Device device_;
  InitializedModels initialized_;
  std::vector<LossScaler> scalers_;
  std::vector<OfOptimizer> optimizers_;
};

// Casts the models and gives the optimizers masters, as the level says (opt_level.h); optimizers keep their parameters
// and groups. Before DistributedDataParallel is made and before any step. Throws ConfigError, with nothing changed, for
// models that are in 16 bits, wrapped or initialized already, or on another device than each other, for optimizers over
// parameters that no model has, and for options that do not go together.
inline std::unique_ptr<Amp> initialize(torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                                       const Options& options = {}) {
  return std::make_unique<Amp>(std::vector{&model}, std::vector{&optimizer}, options);
}
inline std::unique_ptr<Amp> initialize(const std::vector<torch::nn::Module*>& models,
                                       const std::vector<torch::optim::Optimizer*>& optimizers,
                                       const Options& options = {}) {
  return std::make_unique<Amp>(models, optimizers, options);
}

}  // namespace lockstep::amp
