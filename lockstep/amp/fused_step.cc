#include "lockstep/amp/fused_step.h"

#include <cmath>

#include "lockstep/optim/clip.h"

namespace lockstep::amp {

StepReport fused_step(optim::AnyOptimizer& optimizer, LossScaler& scaler, double square_sum,
                      const StepOptions& options) {
  const double scale = scaler.scale();
  StepReport report{.gradient_norm = std::sqrt(square_sum) / scale, .finite = std::isfinite(square_sum)};
  report.skipped = scaler.update(!report.finite);
  if (report.skipped) return report;
  const double clip = options.max_norm > 0 ? optim::clip_factor(report.gradient_norm, options.max_norm) : 1;
  optimizer.update(
      {.grad_multiplier = clip / scale, .clip_value = options.max_value, .grad_norm = report.gradient_norm * clip});
  return report;
}

}  // namespace lockstep::amp
