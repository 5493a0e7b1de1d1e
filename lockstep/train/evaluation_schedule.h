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
  bool due(int64_t step) const { return at_end(step) || at_interval(step, every); }

  // Returns the data of that evaluation. If there is a validation split, the test split is for the end alone.
  Split split(int64_t step) const { return has_validation && !at_end(step) ? Split::kValidation : Split::kTest; }

  // Returns whether a plateau schedule observes this step's metrics. It does at every interval, where any run with
  // these options evaluates, however often it is stopped. It does not at the run's end, which depends on --steps.
  bool plateau_due(int64_t step) const { return at_interval(step, every); }

  // Returns the data that a plateau schedule observes, the same at every interval.
  Split plateau_split() const { return has_validation ? Split::kValidation : Split::kTest; }

 private:
  bool at_end(int64_t step) const { return step >= total_steps; }
};

}  // namespace lockstep::train
