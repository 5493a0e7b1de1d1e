// A run's learning rate schedule under way: the rate of each step, and its form in checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/schedule/schedule.h"

namespace lockstep::train {

struct Scheduler {
  schedule::ScheduleOptions options;
  int64_t steps_per_unit = 1;   // how many of the run's steps the schedule counts as one
  std::string metric = "loss";  // the metric that a plateau observes
  schedule::PlateauState plateau = {};

  double lr(int64_t step) const { return schedule::lr_at(options, step / steps_per_unit, plateau); }
  // The momentum of a step; nothing where the schedule leaves it alone.
  std::optional<double> momentum(int64_t step) const { return schedule::momentum_at(options, step / steps_per_unit); }
  bool goes_by_metric() const { return std::holds_alternative<schedule::PlateauLr>(options.shape); }
  // Gives a plateau the metric of one more evaluation. It ignores evaluations before the warm-up's end. Called with a
  // plateau only.
  void observe(int64_t step, double value);
};

// Returns state_dict() of PyTorch's scheduler of this shape after `step` steps. With a warm-up it is SequentialLR's,
// which holds LinearLR's and the shape's. Milestones are a plain dict. PyTorch has no plateau with a warm-up: the dict
// is then the plateau's alone, and its _last_lr is the rate that the warm-up leads to. A plateau's dict also holds
// base_lrs and its metric's name. Lists of rates have one for each parameter group, in the ratios `lr_scales`.
checkpoint::Dict scheduler_to_dict(const Scheduler& scheduler, int64_t step,
                                   const std::vector<double>& lr_scales = {1});

// Adds to a group's options the keys that PyTorch's schedulers keep in an optimizer's parameter groups (initial_lr …),
// in the group's ratio, its "lr_scale" if it has one.
void add_group_rates(const Scheduler& scheduler, checkpoint::Dict& options);

// Returns the plateau's state in a checkpoint's "scheduler", or {} if the checkpoint or the run has another schedule.
// Throws ConfigError if it began at another rate or observed another metric than the run's, and DataError.
schedule::PlateauState plateau_in(const checkpoint::ValueView& saved, const Scheduler& run);

}  // namespace lockstep::train
