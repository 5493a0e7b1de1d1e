// The schedule of a run's evaluations: the steps, and the data of each. Pure functions of the step.
#pragma once

#include <cstdint>

namespace lockstep::train {

// Whether an event of every `every` steps is due after `step` steps; an `every` of 0 means never.
inline bool at_interval(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

struct EvaluationSchedule {
  enum class Split { kValidation, kTest };

  int64_t every = 0;  // steps; 0: at the end alone
  int64_t total_steps = 0;
  bool has_validation = false;  // some of the training data are held out

  // Returns whether the run evaluates after `step` steps: it does at every interval and at the end.
  bool due(int64_t step) const { return step >= total_steps || at_interval(step, every); }

  // Returns the data of these evaluations, by which best.pt, --early-stop and a plateau go. If it is the validation
  // split, the test split is evaluated once more, after the last of them.
  Split split() const { return has_validation ? Split::kValidation : Split::kTest; }

  // Returns whether a plateau schedule observes this step's metrics, and --early-stop counts it. They do at every
  // interval, where any run with these options evaluates, however often it is stopped. They do not at the run's end,
  // which depends on --steps.
  bool plateau_due(int64_t step) const { return at_interval(step, every); }
};

}  // namespace lockstep::train
