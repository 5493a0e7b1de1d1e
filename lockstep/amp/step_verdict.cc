#include "lockstep/amp/step_verdict.h"

#include <cmath>

#include "lockstep/optim/clip.h"

namespace lockstep::amp {

Verdict judge(LossScaler& scaler, double square_sum, const StepOptions& options) {
  const double scale = scaler.scale();
  StepReport report{.gradient_norm = std::sqrt(square_sum) / scale, .finite = std::isfinite(square_sum)};
  report.skipped = scaler.update(!report.finite);
  const double clip = options.max_norm > 0 ? optim::clip_factor(report.gradient_norm, options.max_norm) : 1;
  return {report,
          {.grad_multiplier = clip / scale,
           .clip_value = options.max_value,
           .grad_norm = report.gradient_norm * clip,
           .loss_scale = scale}};
}

}  // namespace lockstep::amp
