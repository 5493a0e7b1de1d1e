// An optimizer as a training loop sees it: whole (FusedOptimizer), or sharded over ranks (parallel::ShardedOptimizer).
//
// A sharded optimizer's update(), follow_parameters(), state_dict(), averages(), exchange_averages(), masters() and
// load_masters() are collectives. One thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/optim/state.h"

namespace lockstep::optim {

// The parts of a step beside the optimizer's own arithmetic, done in the same pass over memory.
struct Update {
  double grad_multiplier = 1;  // clip factor ÷ loss scale; not negative
  // Clamps each multiplied element to [-clip_value, clip_value], as torch.nn.utils.clip_grad_value_ does; NaN stays
  // NaN.
  double clip_value = std::numeric_limits<double>::infinity();
  // ‖all gradients × grad_multiplier‖ where the caller knows it, as from the fold's square sums. It spares LAMB a pass.
  double grad_norm = std::numeric_limits<double>::quiet_NaN();
  double loss_scale = 1;  // the factor in the gradients (held_gradient.h), which grad_multiplier takes out
  // fp32 [1] on the parameters' device: 1 leaves parameters and state as they are, 0 does not. Undefined: 0. Only where
  // takes_overflow(); end_update() says which it was.
  at::Tensor overflow = {};
};

class AnyOptimizer {
 public:
  virtual ~AnyOptimizer();
  AnyOptimizer(const AnyOptimizer&) = delete;
  AnyOptimizer& operator=(const AnyOptimizer&) = delete;

  // Those that the calling thread has made and that are there.
  static std::vector<AnyOptimizer*> of_this_thread();

  // PyTorch's name: "sgd", "adamw" …
  virtual std::string_view name() const = 0;

  // Updates every parameter that has a gradient, and leaves the gradients as they are. Throws ConfigError for a
  // parameter that is sparse, has gaps, is neither on the CPU nor on a GPU, or has no floating-point type, for a
  // sparse gradient where the optimizer takes none, and for one that is held by another loss scale than the update's.
  virtual void update(const Update& update) = 0;

  // Whether an update of the gradients that are there takes Update::overflow.
  virtual bool takes_overflow() const { return false; }
  // Ends an update with an overflow, once the host knows it. No other call comes in between.
  virtual void end_update(bool /*overflow*/) {}

  virtual std::vector<at::Tensor> all_parameters() const = 0;  // through all groups
  // Whether it has taken a step, or has loaded the state of one.
  virtual bool has_stepped() const = 0;

  // Follows parameters that were cast, or moved to other memory, since it was made. Call it before the first step and
  // before state is loaded, else ConfigError.
  virtual void follow_parameters() = 0;

  // Sets the rate. Each group gets it times its own scale (GroupOptions::lr_scale), so that rates keep their ratios.
  virtual void set_lr(double lr) = 0;
  virtual double lr() const = 0;                      // without the groups' scales
  virtual std::vector<double> lr_scales() const = 0;  // by group

  // Sets the momentum of all groups, or Adam's beta1. Throws ConfigError for an optimizer without one.
  virtual void set_momentum(double momentum) = 0;

  // The state_dict() of PyTorch's optimizer of this name. The tensors are the optimizer's own, and the next step
  // changes them. A sharded optimizer returns copies on rank 0, or where it is told to gather; elsewhere the groups
  // without state.
  virtual OptimizerState state_dict() const = 0;

  // Takes over options and copies of the state. `names` are the parameters' names for messages (may be empty). Throws
  // ConfigError, and changes nothing, for what does not fit: groups, names, shapes, dtypes, missing parts.
  virtual void load_state_dict(const OptimizerState& state, std::span<const std::string> names = {}) = 0;

  // Makes every later update() also keep an exponential moving average of the weights (Polyak and Juditsky, 1992), in
  // its pass: average = decay · average + (1 - decay) · weight. The first update copies the weights, as
  // torch.optim.swa_utils' AveragedModel with get_ema_multi_avg_fn(decay) does. 0 <= decay <= 1, else ConfigError.
  virtual void keep_average(double decay) = 0;

  // Whether it keeps an average. No collective.
  virtual bool keeps_average() const = 0;

  // The averages, by parameter through all groups; undefined where there is none yet. Ownership is as in state_dict().
  virtual std::vector<at::Tensor> averages() const = 0;

  // Continues from copies of `averages`, after keep_average(). Throws ConfigError for another number of them or other
  // shapes.
  virtual void load_averages(const std::vector<at::Tensor>& averages) = 0;

  // Swaps weights and averages: call it before an evaluation of the averages, and again after it. A parameter without
  // an average stays as it is. In between, update() and keep_average() are a ConfigError, and so is loop::State's
  // saving or loading: a checkpoint has both.
  virtual void exchange_averages() = 0;
  // Whether the weights have the values of their averages.
  virtual bool has_exchanged_averages() const = 0;

  // Gives each fp16 or bf16 weight an fp32 master (Micikevicius et al., ICLR 2018), a copy of the weight as it is.
  // update() then steps the master with fp32 state and writes the weight as its rounded copy in the same pass; an
  // average is the master's. A weight that is written by others, such as a broadcast, becomes its master again; a write
  // through Tensor::data(), which libtorch does not count, is not seen. DistributedDataParallel gives all ranks the
  // masters with the weights. Call it before the first step and before state is loaded, else ConfigError.
  virtual void keep_masters() = 0;

  // The masters, by parameter through all groups; undefined where the weight has more than 16 bits, empty where none
  // are kept. Ownership is as in state_dict().
  virtual std::vector<at::Tensor> masters() const = 0;

  // Copies `masters` into the masters and rounds them into the weights. Undefined ones are skipped. Throws ConfigError
  // unless they are as many and of equal shapes.
  virtual void load_masters(const std::vector<at::Tensor>& masters) = 0;

 protected:
  AnyOptimizer();
};

}  // namespace lockstep::optim
