#include "lockstep/amp/step_verdict.h"

#include <cmath>

#include "lockstep/optim/clip.h"

namespace lockstep::amp {

Verdict judge(LossScaler& scaler, const FoldedGradients& gradients, const StepOptions& options,
              std::optional<bool> known) {
  const double scale = gradients.loss_scale;
  StepReport report{.gradient_norm = std::sqrt(gradients.square_sum) / scale,
                    .finite = std::isfinite(gradients.square_sum)};
  const bool tells = scale == scaler.scale() || (!report.finite && scale < scaler.scale());
  if (known) {
    report.skipped = *known;
  } else {
    report.skipped = tells ? scaler.update(!report.finite) : scaler.enabled() && !report.finite;
  }
  const double clip = options.max_norm > 0 ? optim::clip_factor(report.gradient_norm, options.max_norm) : 1;
  const double left = gradients.unscaled ? 1 : scale;  // in the gradients
  return {report,
          {.grad_multiplier = clip / left,
           .clip_value = options.max_value,
           .grad_norm = report.gradient_norm * clip,
           .loss_scale = left}};
}

}  // namespace lockstep::amp
