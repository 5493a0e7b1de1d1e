// When a run evaluates, and on which data. Pure functions of the step.
#pragma once

#include <cstdint>

namespace lockstep::train {

struct EvaluationSchedule {
  enum class Split { kValidation, kTest };

  int64_t every = 0;  // steps; 0: at the end alone
  int64_t total_steps = 0;
  bool has_validation = false;  // some of the training data are held out

  // Whether the run evaluates after `step` steps: at every interval, and at the end.
  bool due(int64_t step) const { return at_end(step) || at_interval(step); }

  // The data of that evaluation. Where there is a validation part the test data are for the end alone.
  Split split(int64_t step) const { return has_validation && !at_end(step) ? Split::kValidation : Split::kTest; }

  // Whether a plateau observes this step's metrics: at every interval, for any run with these options evaluates there,
  // however often it is stopped. The run's end is no interval, for it depends on --steps.
  bool plateau_due(int64_t step) const { return at_interval(step); }

  // The data that a plateau goes by, the same at every interval.
  Split plateau_split() const { return has_validation ? Split::kValidation : Split::kTest; }

 private:
  bool at_end(int64_t step) const { return step >= total_steps; }
  bool at_interval(int64_t step) const { return every > 0 && step % every == 0; }
};

}  // namespace lockstep::train
