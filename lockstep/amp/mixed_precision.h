// Mixed precision for the models and optimizers of a hand-written training loop, made before DistributedDataParallel.
//
//   amp::MixedPrecision mixed({net.get()}, {&optimizer}, {.opt_level = amp::OptLevel::kO2});
//   parallel::DistributedDataParallel ddp(net.ptr(), world);
//   for (…) {
//     const auto result = ddp.run(number, batch, [&](const auto& lane) {
//       return loss_of(net->forward(lane.data), lane.target);
//     }, mixed);
//     mixed.step(optimizer, result);
//     mixed.zero_grad(optimizer);
//   }
//
// Gradients with a loss scale in them are held (optim/held_gradient.h): libtorch's clipping and an optimizer's own
// step() refuse them.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/amp/autocast.h"
#include "lockstep/amp/loss_scaler.h"
#include "lockstep/amp/mixed_optimizer.h"
#include "lockstep/amp/model_checks.h"
#include "lockstep/amp/nested.h"
#include "lockstep/amp/opt_level.h"
#include "lockstep/amp/step_verdict.h"

namespace lockstep::amp {

// One thread. Models and optimizers outlive it.
class MixedPrecision {
 public:
  // Casts the models and gives the optimizers masters, as the level says (opt_level.h): of libtorch's optimizers, those
  // of lockstep/optim, and sharded ones, for which this is a collective. Masters begin with the weights' values before
  // the cast. Comes before DistributedDataParallel, which gives all ranks rank 0's masters, and before any step. Throws
  // ConfigError, with nothing changed, for models that are already in 16 bits, wrapped or cast by another
  // MixedPrecision, for models on different devices, for optimizers over parameters that no model has, and for options
  // that do not go together.
  MixedPrecision(const std::vector<torch::nn::Module*>& models, const std::vector<optim::OptimizerRef>& optimizers,
                 const Options& options);
  ~MixedPrecision();

  // Returns the one that a parameter's model was given to; nullptr if there is none.
  static const MixedPrecision* find_for(const at::Tensor& parameter);

  const Policy& policy() const { return policy_; }

  // Returns the scope for a forward pass, which DistributedDataParallel::run opens for each lane.
  AutocastScope autocast() const { return AutocastScope(policy_, device_.type()); }
  // Casts floating-point outputs to cast_model_outputs. If that is unset, a level with casts gives fp32, for a loss
  // that is computed outside, and one without leaves the output. Takes tensors and what has them in it (nested.h).
  template <typename T>
  T cast_outputs(const T& output) const {
    return map_tensors(output, [this](const at::Tensor& each) { return cast_output(each); });
  }
  // Casts floating-point inputs to the model's dtype if the level casts the model. A model whose operations are not
  // cast needs it.
  template <typename T>
  T cast_inputs(const T& input) const {
    return map_tensors(input, [this](const at::Tensor& each) { return cast_input(each); });
  }
  // Runs a forward pass with everything cast: its inputs, its operations, and what it returns. `model` is a module, its
  // holder, or any function of these inputs.
  template <typename Model, typename... Inputs>
  auto forward(Model&& model, const Inputs&... inputs) const {
    hold_masters_in_training();
    const AutocastScope scope = autocast();
    if constexpr (requires { model->forward(inputs...); }) {
      return cast_outputs(model->forward(cast_inputs(inputs)...));
    } else if constexpr (requires { model.forward(inputs...); }) {
      return cast_outputs(model.forward(cast_inputs(inputs)...));
    } else {
      return cast_outputs(std::invoke(model, cast_inputs(inputs)...));
    }
  }

  // Steps the optimizer and sets the next scale. `gradients`: what DistributedDataParallel::run has returned, which was
  // given this and the loss_id. Optimizers of lockstep/optim take one pass over memory. Skips the step if a gradient
  // was not finite. One result is one verdict: several optimizers may be stepped by it one after the other, as in
  // PyTorch with one update() after their steps. Two results may be computed before either is stepped. The gradients
  // may have changed since, by a clip of one's own or a later run that added to them: norm and verdict are then those
  // of the present ones. Throws ConfigError for gradients of another scale, for a result of other networks or of not
  // all that the optimizer steps, for an optimizer that the result has stepped already or that is in the list twice,
  // where zero_grad() has come before, and for gradients that are not finite, or are to be clipped by their norm, and
  // have changed since the verdict.
  StepReport step(const optim::OptimizerRef& optimizer, const FoldedGradients& gradients,
                  const StepOptions& options = {}, int loss_id = 0) {
    return step(std::vector{optimizer}, gradients, options, loss_id);
  }
  // Steps several optimizers. One loss gave their gradients, and `gradients` is of all of them together.
  StepReport step(const std::vector<optim::OptimizerRef>& optimizers, const FoldedGradients& result,
                  const StepOptions& options = {}, int loss_id = 0);

  // Takes the loss scale out of the optimizer's gradients, for code that reads or changes them before step(), which
  // then gets what this returns: an adaptive clip, for one. They are those of master_params(optimizer). Where the scale
  // is 1 it fills libtorch's masters' gradients. Throws ConfigError for gradients of another scale, and for 16-bit
  // ones, in which small values would be lost (of this library's optimizers at O2, of all at O3).
  FoldedGradients unscale(const optim::OptimizerRef& optimizer, const FoldedGradients& gradients, int loss_id = 0) {
    return unscale(std::vector{optimizer}, gradients, loss_id);
  }
  FoldedGradients unscale(const std::vector<optim::OptimizerRef>& optimizers, const FoldedGradients& gradients,
                          int loss_id = 0);
  void zero_grad(const optim::OptimizerRef& optimizer) { find(optimizer).zero_grad(); }

  double loss_scale(int loss_id = 0) const { return scaler(loss_id).scale(); }
  // Throws ConfigError for a loss_id that num_losses does not allow.
  const LossScaler& scaler(int loss_id = 0) const;
  LossScaler& scaler(int loss_id = 0);
  int num_losses() const { return options_.num_losses; }
  bool has_scale(double loss_scale) const;  // whether it is one of the losses'
  bool has_optimizers() const { return !optimizers_.empty(); }
  void add_libtorchs(std::vector<optim::OptimizerRef>& to) const;  // the optimizers among these that are libtorch's

  // Returns the tensors that the optimizer steps: fp32 masters at O2, elsewhere its parameters. Masters of
  // lockstep/optim's optimizers have no .grad; clip by step()'s options instead.
  std::vector<at::Tensor> master_params(const optim::OptimizerRef& optimizer) const {
    return find(optimizer).stepped();
  }
  // The masters alone, by parameter through all groups, for a checkpoint: undefined where there is none. Of a sharded
  // optimizer they are whole on rank 0: a collective.
  std::vector<at::Tensor> masters(const optim::OptimizerRef& optimizer) const { return find(optimizer).masters(); }
  // Loads either of the two for a resume, as MixedOptimizer::load_masters() does.
  void load_masters(const optim::OptimizerRef& optimizer, const std::vector<at::Tensor>& masters) {
    find(optimizer).load_masters(masters);
  }
  // Whether this has given the optimizer's 16-bit parameters masters: at O2, of those in the list.
  bool keeps_masters_of(const optim::OptimizerRef& optimizer) const;
  // Returns the masters that each rank has to itself of these parameters, in their order.
  std::vector<at::Tensor> masters_of(std::span<const at::Tensor> parameters) const;

  // State dicts have Apex's form, {"loss_scaler0": {"loss_scale", "unskipped"}, …}, with torch's keys beside, and with
  // "opt_level" (2) and "half" (0) in the first, which Apex ignores. load_state_dict throws ConfigError for another
  // level's state or another number of losses. A state without "opt_level", Apex's own, loads at any level.
  using State = std::map<std::string, ScalerDict>;
  State state_dict() const;
  void load_state_dict(const State& state);

  // Holds back the masters' optimizers until step(), after their gradients were dropped.
  void hold_masters() const;

  // All optimizers' masters by the model's weight, and the way back: see MixedOptimizer.
  MastersByWeight masters_by_weight() const;
  void load_masters_by_weight(const MastersByWeight& values);

  // Returns the place of an optimizer in the list that the constructor took; find() returns its MixedOptimizer. Throws
  // ConfigError for one that was not in the list.
  size_t index_of(const optim::OptimizerRef& optimizer) const;
  MixedOptimizer& find(const optim::OptimizerRef& optimizer) { return optimizers_[index_of(optimizer)]; }
  const MixedOptimizer& find(const optim::OptimizerRef& optimizer) const { return optimizers_[index_of(optimizer)]; }

 private:
  // The last results of a loss that were stepped.
  struct Judged {
    static constexpr size_t kMost = 16;

    // Whether the step of a result was skipped; nothing for one that was not judged.
    std::optional<bool> verdict_on(const FoldedGradients& gradients) const;
    void add(uint64_t run, bool skipped);

    double scale = 0;                                     // of the loss, before the last verdict
    std::deque<std::pair<uint64_t, bool>> verdicts = {};  // by run
  };

  // The gradients of an optimizer's weights as this has left them.
  struct Left {
    std::shared_ptr<const MarkedWeights> weights = {};
    std::optional<GradientMarks> by_step = {}, by_unscale = {};
  };

  GradientMarks marks_of(const optim::OptimizerRef& optimizer);
  FoldedGradients as_they_are(const FoldedGradients& result) const;
  void check_scale(const FoldedGradients& gradients, int loss_id) const;
  void check_step(const std::vector<optim::OptimizerRef>& optimizers, const FoldedGradients& gradients) const;
  void check_gradients(const optim::OptimizerRef& optimizer, const GradientMarks& marks) const;
  void check_unjudged(const optim::OptimizerRef& optimizer, const FoldedGradients& gradients,
                      const StepOptions& options, bool skipped) const;
  bool goes_ahead(const std::vector<optim::OptimizerRef>& optimizers, const FoldedGradients& gradients,
                  const StepOptions& options, bool may_skip);
  void update_one(MixedOptimizer& mixed, const FoldedGradients& gradients, optim::Update update);
  void hold_masters_in_training() const;
  at::Tensor cast_output(const at::Tensor& output) const;
  at::Tensor cast_input(const at::Tensor& input) const;

  Options options_;
  Policy policy_;
  at::Device device_;
  InitializedModels initialized_;
  std::vector<LossScaler> scalers_;
  std::vector<Judged> judged_;  // by loss
  std::vector<MixedOptimizer> optimizers_;
  std::vector<Left> left_;  // by optimizer
};

}  // namespace lockstep::amp
