// The interface of the optimizers here, and what they share: one pass over all parameters that multiplies the
// gradients, updates the state and the weights; state in PyTorch's form.
//
// They are torch::optim::Optimizers: whatever takes one of those takes these. One thread at a time.
#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/optim/group_options.h"
#include "lockstep/optim/slots.h"
#include "lockstep/optim/state.h"

namespace lockstep::optim {

// What one step adds to the optimizer's own arithmetic.
struct Update {
  double grad_multiplier = 1;  // clip factor ÷ loss scale: not negative. 1 leaves the gradients as they are
};

class FusedOptimizer : public torch::optim::Optimizer {
 public:
  // Updates every parameter that has a gradient; the gradients stay as they are. Throws ConfigError for a parameter or
  // gradient that such a pass can't take: sparse, with gaps, not on the CPU, not of a floating-point type.
  void update(const Update& update);

  // The form of torch::optim::Optimizer: the closure, if any, computes the loss, then update({}).
  at::Tensor step(LossClosure closure = nullptr) override;

  // As PyTorch's "sgd", "adamw" …
  virtual std::string_view name() const = 0;

  void set_lr(double lr);  // of all groups
  double lr() const;       // of the first group

  // state_dict() of PyTorch's optimizer of this name. The tensors are the optimizer's own, which the next step changes.
  OptimizerState state_dict() const;

  // Takes over options and state, copying the tensors; `names` are the parameters' for messages (may be empty). Throws
  // ConfigError, with nothing changed, for what does not fit: groups, names, shapes, dtypes, missing parts.
  void load_state_dict(const OptimizerState& state, std::span<const std::string> names = {});

 protected:
  // Groups whose options are of another optimizer are a ConfigError.
  FusedOptimizer(const std::vector<torch::optim::OptimizerParamGroup>& groups, std::unique_ptr<GroupOptions> defaults);

  // What a parameter's state consists of, at most kMaxSlots, and may depend on the options.
  virtual std::span<const SlotSpec> slots(const GroupOptions& options) const = 0;
  // Makes the state that `parameter` still lacks before its next step.
  virtual void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const = 0;
  // One parameter's step: its state is prepared, and `gradient` lies in memory as it does.
  virtual void step_one(const GroupOptions& options, const at::Tensor& parameter, const at::Tensor& gradient,
                        double multiplier, Slots& slots) const = 0;

  // Prepares all parameters now, for an optimizer that has state before its first step.
  void prepare_all();

 private:
  const GroupOptions& options_of(const torch::optim::OptimizerParamGroup& group) const;
  Slots& ready_slots(size_t group, size_t position);

  std::vector<std::vector<Slots>> slots_;  // by group and position in it; grown on demand
};

}  // namespace lockstep::optim
