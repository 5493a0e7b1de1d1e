// The decision about an optimizer step, from the sum of squares of the gradients that the fold has given: finite check,
// clipping and unscaling. Only the update touches memory.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_set>

#include "lockstep/amp/gradient_marks.h"
#include "lockstep/amp/loss_scaler.h"
#include "lockstep/base/late_number.h"
#include "lockstep/optim/any_optimizer.h"

namespace lockstep::amp {

struct StepOptions {
  double max_norm = 0;  // norm of all gradients together, unscaled; 0: not clipped
  double max_value = std::numeric_limits<double>::infinity();  // size of each element, clipped after that
};

// Whose gradients a square sum has: those of the optimizers that are stepped; also those that other ranks alone have,
// of a pipeline's other stages or as parameter servers; or without those of other parts of weights that are divided
// among ranks.
enum class Coverage { kThese, kMore, kLess };

// What a step has to know of the folded gradients of a loss that was multiplied by a loss scale.
struct FoldedGradients {
  LateNumber square_sum;  // with the scale in them
  double loss_scale;
  static constexpr int kNoLoss = -1;
  int loss_id = kNoLoss;   // of MixedPrecision's losses; kNoLoss: unknown
  int64_t gradients = -1;  // the number of parameters that have one; -1: unknown
  uint64_t run = 0;        // tells the result of one run from those of all others; 0: unknown
  bool unscaled = false;   // MixedPrecision::unscale() has taken the scale out of them; it is in square_sum still
  Coverage coverage = Coverage::kThese;
  at::Tensor overflow = {};                 // optim::Update's; undefined: nobody knows before square_sum is read
  std::optional<GradientMarks> marks = {};  // what the run has left in .grad; nothing: unknown
  // The weights of networks that took part in the run without being folded, and that its loss has reached; null: none.
  std::shared_ptr<const std::unordered_set<const c10::TensorImpl*>> passed_by = {};
};

struct StepReport {
  double gradient_norm = 0;  // unscaled; 0 may mean unknown if the step was not clipped by norm
  bool finite = true;        // all gradients were finite
  bool skipped = false;      // the scaler skipped a step that was not finite, and the weights stay as they are
};

// The decision about a step: its report, and how the update multiplies and clips unless the step is skipped. judge()
// makes it from the sum of squares of the gradients, and sets the next scale.
struct Verdict {
  StepReport report;
  optim::Update update;
};
//
// Two losses may have been run before either is stepped: then the second one's gradients have the scale from before. Of
// the present scale they only tell something if they overflowed with a smaller one. `known`: whether the step is
// skipped, where the scaler has seen these gradients already.
Verdict judge(LossScaler& scaler, const FoldedGradients& gradients, const StepOptions& options,
              std::optional<bool> known = {});

}  // namespace lockstep::amp
