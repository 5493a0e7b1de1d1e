// An optimizer as a training loop sees it: whole (FusedOptimizer), or sharded over ranks (parallel::ShardedOptimizer).
//
// Of a sharded one update(), state_dict(), averages(), exchange_averages(), masters() and load_masters() are
// collectives. One thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/optim/state.h"

namespace lockstep::optim {

// What one step adds to the optimizer's own arithmetic, in the same pass over memory.
struct Update {
  double grad_multiplier = 1;  // clip factor ÷ loss scale: not negative. 1 leaves the gradients as they are
  // Then each element goes into [-clip_value, clip_value], as torch.nn.utils.clip_grad_value_ does; NaN stays NaN.
  double clip_value = std::numeric_limits<double>::infinity();
  // ‖all gradients × grad_multiplier‖ where it is known, from the fold's square sums say: spares LAMB a pass for it.
  double grad_norm = std::numeric_limits<double>::quiet_NaN();
};

class AnyOptimizer {
 public:
  virtual ~AnyOptimizer() = default;

  // As PyTorch's "sgd", "adamw" …
  virtual std::string_view name() const = 0;

  // Updates every parameter that has a gradient; the gradients stay as they are. Throws ConfigError for a parameter or
  // gradient that such a pass can't take: sparse, with gaps, neither on the CPU nor on a GPU, not of a floating-point
  // type.
  virtual void update(const Update& update) = 0;

  virtual void set_lr(double lr) = 0;  // of all groups
  virtual double lr() const = 0;       // of the first group

  // state_dict() of PyTorch's optimizer of this name. The tensors are the optimizer's own, which the next step changes.
  // Of a sharded optimizer: copies, on rank 0 alone; elsewhere it has the groups and no state.
  virtual OptimizerState state_dict() const = 0;

  // Takes over options and state, copying the tensors; `names` are the parameters' for messages (may be empty). Throws
  // ConfigError, with nothing changed, for what does not fit: groups, names, shapes, dtypes, missing parts.
  virtual void load_state_dict(const OptimizerState& state, std::span<const std::string> names = {}) = 0;

  // From now on every update() also keeps an exponential moving average of the weights (Polyak and Juditsky, 1992), in
  // its pass: average = decay · average + (1 - decay) · weight, and the first one copies, as torch.optim.swa_utils'
  // AveragedModel with get_ema_multi_avg_fn(decay). 0 <= decay <= 1, else ConfigError.
  virtual void keep_average(double decay) = 0;

  // The averages, by parameter through all groups; undefined where there is none yet. Whose memory: as state_dict().
  virtual std::vector<at::Tensor> averages() const = 0;

  // Goes on from these, which are copied. After keep_average(). ConfigError for other numbers or shapes.
  virtual void load_averages(const std::vector<at::Tensor>& averages) = 0;

  // Weights and averages change places: before an evaluation of the averages, and after it. A parameter without an
  // average stays as it is.
  virtual void exchange_averages() = 0;

  // From now on each fp16 or bf16 weight has an fp32 master (Micikevicius et al., ICLR 2018), which update() steps with
  // fp32 state, and of which the weight is the rounded copy, written in the same pass; an average is the master's. Made
  // from the weights as they are. Before the first step, and before its state is loaded, else ConfigError.
  virtual void keep_masters() = 0;

  // The masters, by parameter through all groups; undefined where the weight is no 16-bit one, empty where none are
  // kept. Whose memory: as state_dict().
  virtual std::vector<at::Tensor> masters() const = 0;

  // Copies into the masters (as many, of equal shapes, undefined ones left alone; else ConfigError) and rounds into the
  // weights.
  virtual void load_masters(const std::vector<at::Tensor>& masters) = 0;
};

}  // namespace lockstep::optim
