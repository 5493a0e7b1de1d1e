// Apex's amp: initialize() puts a model and its optimizers into mixed precision, and the loop then calls scale_loss()
// and step().
//
//   auto amp = apex::amp::initialize(*net, optimizer, {.opt_level = "O2"});   // before DistributedDataParallel
//   for (…) {
//     const at::Tensor loss = loss_of(amp->forward(net, x));
//     {
//       const auto scaled = amp->scale_loss(loss, optimizer);
//       scaled.backward();
//     }
//     amp->step(optimizer);
//     amp->zero_grad(optimizer);
//   }
//
// DistributedDataParallel::run(…, *amp) scales and folds by itself; after it, call amp->step(optimizer, result).
#pragma once

#include <torch/nn/module.h>

#include <exception>
#include <memory>
#include <vector>

#include "lockstep/amp/cast_functions.h"
#include "lockstep/amp/mixed_precision.h"
#include "lockstep/amp/op_lists.h"
#include "lockstep/compat/apex/initialize_options.h"

namespace lockstep::apex::amp {

using lockstep::amp::float_function;
using lockstep::amp::half_function;
using lockstep::amp::promote_function;
using lockstep::amp::register_float_function;
using lockstep::amp::register_half_function;
using lockstep::amp::register_promote_function;
using lockstep::amp::StepOptions;
using lockstep::amp::StepReport;
using optim::OptimizerRef;
using disable_casts = lockstep::amp::DisableCasts;

class Amp;

struct ScaleLossOptions {
  int loss_id = 0;             // the loss's number, below num_losses
  bool delay_unscale = false;  // gradients stay scaled; set for all backward passes of an accumulation but the last,
                               // which alone may fold (no_sync(), disable_allreduce())
};

// The scope of a scaled loss: call its backward(), once. Its destructor unscales the gradients, checks whether they are
// finite and sets the next scale; it may throw.
class ScaledLoss {
 public:
  ScaledLoss(Amp& amp, at::Tensor loss, std::vector<OptimizerRef> optimizers, ScaleLossOptions options);
  ~ScaledLoss() noexcept(false);
  ScaledLoss(const ScaledLoss&) = delete;
  ScaledLoss& operator=(const ScaledLoss&) = delete;

  const at::Tensor& loss() const { return loss_; }  // scaled
  void backward() const { loss_.backward(); }

 private:
  Amp& amp_;
  at::Tensor loss_;
  std::vector<OptimizerRef> optimizers_;
  ScaleLossOptions options_;
  int exceptions_ = std::uncaught_exceptions();
};

// The state that Apex keeps in its module amp, as an object that the loop owns. One thread. Models and optimizers
// outlive it.
class Amp : public lockstep::amp::MixedPrecision {
 public:
  using MixedPrecision::step;  // by folded gradients and their sum of squares
  using MixedPrecision::unscale;

  // Does what initialize() does.
  Amp(const std::vector<torch::nn::Module*>& models, const std::vector<OptimizerRef>& optimizers,
      const InitializeOptions& options);

  ScaledLoss scale_loss(const at::Tensor& loss, const OptimizerRef& optimizer, ScaleLossOptions options = {}) {
    return ScaledLoss(*this, loss, {optimizer}, options);
  }
  ScaledLoss scale_loss(const at::Tensor& loss, std::vector<OptimizerRef> optimizers, ScaleLossOptions options = {}) {
    return ScaledLoss(*this, loss, std::move(optimizers), options);
  }

  // Steps the optimizer after scale_loss, unless a gradient was not finite. Clips the gradients first (also those of
  // fp32 masters).
  StepReport step(const OptimizerRef& optimizer, const StepOptions& options = {});
  void zero_grad(const OptimizerRef& optimizer);

 private:
  friend class ScaledLoss;
  // The gradients of one optimizer between its backward passes and its step.
  struct Accumulation {
    double scaled_by = 1;                  // the scale that the gradients have
    bool delayed = false;                  // they stay scaled until a scope unscales them
    bool skip = false;                     // the next step is skipped, for a gradient was not finite
    std::vector<at::Tensor> stashed = {};  // gradients of earlier losses, by parameter
    double stashed_by = 1;                 // the scale that those have

    void add_stashed(const OptimizerRef& optimizer);
  };

  void enter(const std::vector<OptimizerRef>& optimizers, const ScaleLossOptions& options);
  void leave(const std::vector<OptimizerRef>& optimizers, const ScaleLossOptions& options);
  bool unscale(lockstep::amp::MixedOptimizer& optimizer, Accumulation& of) const;
  void hold_back(const lockstep::amp::MixedOptimizer& optimizer, const Accumulation& of) const;
  bool keeps_scaled(const lockstep::amp::MixedOptimizer& optimizer) const;
  Accumulation& accumulation(const OptimizerRef& optimizer) { return accumulations_[index_of(optimizer)]; }

  std::vector<Accumulation> accumulations_;  // by optimizer
};

// Casts the models and gives the optimizers masters, as the level says (initialize_options.h); optimizers keep their
// parameters and groups. Where operations are cast it is by Apex's lists, from now on in the whole process
// (use_apex_lists). Comes before DistributedDataParallel and before any step. Throws ConfigError, with nothing changed,
// as MixedPrecision's constructor does.
inline std::unique_ptr<Amp> initialize(torch::nn::Module& model, const OptimizerRef& optimizer,
                                       const InitializeOptions& options = {}) {
  return std::make_unique<Amp>(std::vector{&model}, std::vector{optimizer}, options);
}
inline std::unique_ptr<Amp> initialize(const std::vector<torch::nn::Module*>& models,
                                       const std::vector<OptimizerRef>& optimizers,
                                       const InitializeOptions& options = {}) {
  return std::make_unique<Amp>(models, optimizers, options);
}

}  // namespace lockstep::apex::amp
