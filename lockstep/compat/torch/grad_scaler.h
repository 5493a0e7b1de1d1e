// torch.amp.GradScaler's functions: scale, unscale_, step, update.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>

#include "lockstep/amp/loss_scaler.h"
#include "lockstep/optim/optimizer_ref.h"

namespace lockstep::pytorch::amp {

// The keywords of torch's, with its defaults.
struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int growth_interval = 2000;  // good steps in a row before the scale grows
  bool enabled = true;         // false: the scale is 1 and no step is skipped
};

// The names, order of calls and errors are torch's:
//   scaler.scale(loss).backward(); scaler.unscale_(optimizer) (optional, to clip); scaler.step(optimizer);
//   scaler.update();
// For gradients that are folded already the decision is the same on every rank. Optimizers are libtorch's, those of
// lockstep/optim, or sharded ones. After an overflow the optimizer's own step() throws. One thread.
class GradScaler {
 public:
  explicit GradScaler(const GradScalerOptions& options = {});  // throws ConfigError

  at::Tensor scale(const at::Tensor& loss) const;
  // Divides the gradients of the optimizer's parameters by the scale, in place, once between two updates. Gradients
  // must be fp32, as torch demands. Throws ConfigError for 16-bit ones, for a second call, and for a call after step().
  void unscale_(const optim::OptimizerRef& optimizer);
  // Steps unless a gradient was not finite. Unscales first if unscale_ has not. Returns whether it stepped.
  bool step(const optim::OptimizerRef& optimizer);
  // Sets the next scale, which is `new_scale` if that is given.
  void update();
  void update(double new_scale);

  double get_scale() const { return scaler_.scale(); }
  bool is_enabled() const { return scaler_.enabled(); }
  const lockstep::amp::LossScaler& loss_scaler() const { return scaler_; }
  lockstep::amp::ScalerDict state_dict() const { return torch_state(scaler_); }
  void load_state_dict(const lockstep::amp::ScalerDict& state) { load_state(scaler_, state); }

 private:
  enum class Stage { kReady, kUnscaled, kStepped };
  struct OfOptimizer {
    Stage stage = Stage::kReady;
    bool finite = true;
  };

  lockstep::amp::LossScaler scaler_;
  std::map<optim::OptimizerRef, OfOptimizer> optimizers_;  // seen since the last update
};

}  // namespace lockstep::pytorch::amp
