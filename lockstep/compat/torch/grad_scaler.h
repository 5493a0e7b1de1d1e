// torch.amp.GradScaler's functions: scale, unscale_, step, update.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <limits>
#include <map>
#include <vector>

#include "lockstep/amp/loss_scaler.h"

namespace lockstep::amp {

// The names, order of calls and errors are torch's:
//   scaler.scale(loss).backward(); scaler.unscale_(optimizer) (optional, to clip); scaler.step(optimizer);
//   scaler.update();
// For gradients that every rank has folded already the decision is the same everywhere. One thread.
class GradScaler {
 public:
  // torch's scale has no bounds.
  static ScalerOptions torchs() {
    return {.enabled = true, .min_scale = std::numeric_limits<double>::min(), .max_scale = 0x1p127};
  }
  explicit GradScaler(const ScalerOptions& options = torchs()) : scaler_(options) {}

  at::Tensor scale(const at::Tensor& loss) const;
  // Divides the gradients of the optimizer's parameters by the scale, in place, once between two updates; gradients
  // must be fp32, as torch demands: ConfigError for 16-bit ones, and for a second call or one after step().
  void unscale_(torch::optim::Optimizer& optimizer);
  // Steps unless a gradient was not finite, unscaling first where unscale_ has not. Whether it stepped.
  bool step(torch::optim::Optimizer& optimizer);
  // The next scale. `new_scale` sets it instead.
  void update();
  void update(double new_scale);

  double get_scale() const { return scaler_.scale(); }
  bool is_enabled() const { return scaler_.enabled(); }
  const LossScaler& loss_scaler() const { return scaler_; }
  ScalerDict state_dict() const { return torch_state(scaler_); }
  void load_state_dict(const ScalerDict& state) { load_state(scaler_, state); }

 private:
  enum class Stage { kReady, kUnscaled, kStepped };
  struct OfOptimizer {
    Stage stage = Stage::kReady;
    bool finite = true;
  };

  LossScaler scaler_;
  std::map<const torch::optim::Optimizer*, OfOptimizer> optimizers_;  // seen since the last update
};

}  // namespace lockstep::amp
