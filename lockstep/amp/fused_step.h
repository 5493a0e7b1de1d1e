// One step from gradients that the fold has measured: finite check, clipping, unscaling and update, of which only the
// update touches memory.
#pragma once

#include <limits>

#include "lockstep/amp/loss_scaler.h"
#include "lockstep/optim/any_optimizer.h"

namespace lockstep::amp {

struct StepOptions {
  double max_norm = 0;                                         // of all gradients together, unscaled; 0: not clipped
  double max_value = std::numeric_limits<double>::infinity();  // of each element, after that
};

struct StepReport {
  double gradient_norm = 0;  // unscaled; of a step that was not clipped by norm it may be 0, for unknown
  bool finite = true;        // all gradients were
  bool skipped = false;      // the scaler met some that weren't, and the weights stay as they are
};

// What a step's gradients, of this sum of squares and still scaled, lead to: the report, the next scale, and what an
// update is to multiply and clip by unless the step is skipped.
struct Verdict {
  StepReport report;
  optim::Update update;
};
Verdict judge(LossScaler& scaler, double square_sum, const StepOptions& options);

// `square_sum`: of the gradients, which are still scaled (StepResult, Reducer). Updates the scale. Without a scaler a
// step is taken whatever the gradients are.
StepReport fused_step(optim::AnyOptimizer& optimizer, LossScaler& scaler, double square_sum,
                      const StepOptions& options = {});

}  // namespace lockstep::amp
