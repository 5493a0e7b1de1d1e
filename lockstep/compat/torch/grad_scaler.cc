#include "lockstep/compat/torch/grad_scaler.h"

#include <algorithm>
#include <limits>

#include "lockstep/amp/multi_tensor.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/held_gradient.h"

namespace lockstep::pytorch::amp {

using lockstep::amp::multi_tensor_scale;
using optim::gradients_of;
using optim::OptimizerRef;
using optim::parameters_of;

namespace {

constexpr const char* kNotFinite =
    "is not finite; the scaler's step(), in place of the optimizer's own, skips this step";

}  // namespace

// torch's scale has no bounds.
GradScaler::GradScaler(const GradScalerOptions& options)
    : scaler_({.enabled = options.enabled,
               .init_scale = options.init_scale,
               .growth_factor = options.growth_factor,
               .backoff_factor = options.backoff_factor,
               .growth_interval = options.growth_interval,
               .min_scale = std::numeric_limits<double>::min(),
               .max_scale = 0x1p127}) {}

at::Tensor GradScaler::scale(const at::Tensor& loss) const { return scaler_.enabled() ? loss * scaler_.scale() : loss; }

void GradScaler::unscale_(const OptimizerRef& optimizer) {
  if (!scaler_.enabled()) return;
  OfOptimizer& state = optimizers_[optimizer];
  if (state.stage == Stage::kUnscaled) {
    throw ConfigError("unscale_() has already been called on this optimizer since the last update()");
  }
  if (state.stage == Stage::kStepped) throw ConfigError("unscale_() is being called after step()");
  const optim::UseHeldGradients use;
  const auto gradients = gradients_of(optimizer);
  for (const auto& gradient : gradients) {
    if (gradient.element_size() >= 4) continue;
    throw ConfigError("unscale_(): a gradient is ", gradient.toString(),
                      "; 16-bit weights are stepped through fp32 masters: use apex::amp::initialize at O2");
  }
  state.finite = multi_tensor_scale(gradients, gradients, 1 / scaler_.scale());
  state.stage = Stage::kUnscaled;
  for (const auto& parameter : parameters_of(optimizer)) {
    if (!parameter.grad().defined()) continue;
    optim::release(parameter.grad());
    if (!state.finite) optim::hold(parameter.grad(), {.why = kNotFinite, .readable = true});
  }
}

bool GradScaler::step(const OptimizerRef& optimizer) {
  if (!scaler_.enabled()) {
    optimizer.step();
    return true;
  }
  OfOptimizer& state = optimizers_[optimizer];
  if (state.stage == Stage::kStepped) throw ConfigError("step() has already been called since the last update()");
  if (state.stage == Stage::kReady) unscale_(optimizer);
  if (state.finite) optimizer.step();
  state.stage = Stage::kStepped;
  return state.finite;
}

void GradScaler::update() {
  if (!scaler_.enabled()) return;
  if (optimizers_.empty()) throw ConfigError("update(): no optimizer was stepped or unscaled before it");
  const bool finite =
      std::all_of(optimizers_.begin(), optimizers_.end(), [](const auto& of) { return of.second.finite; });
  scaler_.update(!finite);
  optimizers_.clear();
}

void GradScaler::update(double new_scale) {
  if (!(new_scale > 0)) throw ConfigError("update(): a scale of ", new_scale, "; it must be above 0");
  scaler_.load(
      {.scale = new_scale, .good_steps = scaler_.state().good_steps, .overflows_left = scaler_.state().overflows_left});
  optimizers_.clear();
}

}  // namespace lockstep::pytorch::amp
