// The base of the optimizers: one pass over all parameters that multiplies and clips the gradients and updates the
// state, the weights and their average. Its state has PyTorch's form.
//
// They are torch::optim::Optimizers: whatever takes one of those takes these. One thread at a time.
#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/optim/any_optimizer.h"
#include "lockstep/optim/group_options.h"
#include "lockstep/optim/kernels/elements.h"
#include "lockstep/optim/kernels/operands.h"
#include "lockstep/optim/master_weights.h"
#include "lockstep/optim/positions.h"
#include "lockstep/optim/slots.h"
#include "lockstep/optim/state.h"
#include "lockstep/optim/weight_averages.h"

namespace lockstep::optim {

class FusedOptimizer : public torch::optim::Optimizer, public AnyOptimizer {
 public:
  ~FusedOptimizer() override;

  void update(const Update& update) override;
  bool takes_overflow() const override;
  void end_update(bool overflow) override;

  // torch::optim::Optimizer's form: calls the closure, if any, which computes the loss, and then update({}).
  at::Tensor step(LossClosure closure = nullptr) override;

  std::vector<at::Tensor> all_parameters() const override;
  bool has_stepped() const override { return has_stepped_; }
  void follow_parameters() override;

  void set_lr(double lr) override;
  double lr() const override;
  std::vector<double> lr_scales() const override;
  void set_momentum(double momentum) override;

  OptimizerState state_dict() const override;
  void load_state_dict(const OptimizerState& state, std::span<const std::string> names = {}) override;

  void keep_average(double decay) override;
  bool keeps_average() const override { return averages_.has_value(); }
  std::vector<at::Tensor> averages() const override;
  void load_averages(const std::vector<at::Tensor>& averages) override;
  void exchange_averages() override;
  bool has_exchanged_averages() const override { return averages_ && averages_->are_exchanged(); }

  // For tests: parameters on the CPU are stepped as those of a GPU are (kernels/device_step.h).
  void step_as_on_gpus() { as_on_gpus_ = true; }

  void keep_masters() override;
  std::vector<at::Tensor> masters() const override;
  void load_masters(const std::vector<at::Tensor>& masters) override;

  // Whether each element's step depends on that element alone, so that slices of parameters can be stepped apart.
  virtual bool elementwise() const { return true; }

  // Throws ConfigError for a parameter of this group with a sparse gradient that the optimizer does not take.
  void check_sparse(size_t group, const at::Tensor& parameter) const;

  // A new optimizer of this kind over other parameters, with the options that this one's groups have now and without
  // state.
  virtual std::unique_ptr<FusedOptimizer> over(const std::vector<std::vector<at::Tensor>>& parameters) const = 0;

  // Whether the state of this name is a single number (such as a count of steps) rather than a tensor like its
  // parameter.
  bool is_number(std::string_view state) const;

 protected:
  // Throws ConfigError for groups whose options are another optimizer's.
  FusedOptimizer(const std::vector<torch::optim::OptimizerParamGroup>& groups, std::unique_ptr<GroupOptions> defaults);

  // One parameter's step.
  struct Step {
    const at::Tensor& parameter;  // or its master
    const at::Tensor& gradient;   // in the parameter's memory order
    double multiplier;            // of the gradient
    const at::Tensor* average;    // of the weights, in the same order; nullptr: none is kept
    const at::Tensor* rounded;    // the 16-bit parameter, where `parameter` is its master; else nullptr
    Extras extras;
    device::StepQueue* queue;  // takes the step later, with those of other parameters; nullptr: it is taken now

    Operands operands(const std::array<const at::Tensor*, 3>& state) const {
      return {parameter, gradient, state, average, rounded, queue};
    }
  };

  // A further factor for all gradients, known before the first parameter's step.
  virtual double gradient_factor(const Update&) const { return 1; }

  // Whether the tensor form of the rule takes an overflow (device::StepQueue).
  virtual bool has_guarded_step() const { return false; }

  // How a step by a sparse gradient is taken.
  enum class SparseStep {
    kRefused,
    kRows,   // by the rows that the gradient has; the others stay
    kDense,  // as by a dense gradient, with 0 in the other rows
  };
  virtual SparseStep sparse_step(const GroupOptions&) const { return SparseStep::kRefused; }

  // The slots of a parameter's state, at most kMaxSlots. They may depend on the options.
  virtual std::span<const SlotSpec> slots(const GroupOptions& options) const = 0;
  // Makes the state that a parameter, or its master, still lacks for its next step.
  virtual void prepare(const GroupOptions&, const at::Tensor&, Slots&) const {}
  // Takes one parameter's step; its state is prepared.
  virtual void step_one(const GroupOptions& options, const Step& step, Slots& slots) const = 0;

  // Prepares all parameters at once, for an optimizer that has state before its first step.
  void prepare_all();

  // Whether the optimizer has a rate of its own, beside those of its groups.
  bool has_rate() const;
  // The groups with their options, over other parameters.
  std::vector<torch::optim::OptimizerParamGroup> groups_over(
      const std::vector<std::vector<at::Tensor>>& parameters) const;

 private:
  const GroupOptions& options_of(const torch::optim::OptimizerParamGroup& group) const;
  template <typename Visit>
  void for_each_parameter(const Visit& visit) const;
  void update_one(const Position& position, const at::Tensor& parameter, const Update& update,
                  device::StepQueue& queue);
  bool steps_rows(const Position& position, const at::Tensor& parameter) const;
  void step_rows(const Position& position, const at::Tensor& parameter, const at::Tensor& weight, const Update& update);
  Slots& ready_slots(const Position& position, const at::Tensor& stepped);
  Slots state_before(const Position& position) const;
  at::Tensor stepped(size_t number, const at::Tensor& parameter);
  bool has_counted(const Position& position) const;
  std::vector<at::Tensor> all_stepped();

  std::vector<std::vector<Slots>> slots_;  // by group and index in it; grown on demand
  bool has_stepped_ = false;
  struct Begun {
    bool had_stepped;
    std::vector<std::pair<Position, Slots>> states;  // before it; numbers are copies
  };
  std::optional<Begun> begun_;  // an update whose overflow is not known yet
  bool as_on_gpus_ = false;
  std::unique_ptr<MasterWeights> masters_;
  std::optional<WeightAverages> averages_;
};

}  // namespace lockstep::optim
