// A run's schedule under way: the rate of each step, and what a checkpoint holds of it.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/schedule/schedule.h"

namespace lockstep::train {

struct Scheduler {
  schedule::ScheduleOptions options;
  int64_t steps_per_unit = 1;   // the schedule counts so many of the run's steps as one
  std::string metric = "loss";  // that a plateau goes by
  schedule::PlateauState plateau = {};

  double lr(int64_t step) const { return schedule::lr_at(options, step / steps_per_unit, plateau); }
  bool goes_by_metric() const { return std::holds_alternative<schedule::PlateauLr>(options.shape); }
  // One more evaluation's metric. With a plateau only; before the warm-up's end nothing is counted.
  void observe(int64_t step, double value);
};

// state_dict() of PyTorch's scheduler of this shape after `step` steps; with a warm-up of SequentialLR, which holds
// LinearLR's and the shape's. Milestones are a plain dict. PyTorch has no plateau with a warm-up: it is then the
// plateau's alone, its _last_lr what the warm-up leads to. A plateau has besides base_lrs and its metric's name.
checkpoint::Dict scheduler_to_dict(const Scheduler& scheduler, int64_t step);

// What PyTorch's schedulers keep in an optimizer's parameter groups (initial_lr …) goes into a group's options.
void add_group_rates(const Scheduler& scheduler, checkpoint::Dict& options);

// The plateau in a checkpoint's "scheduler"; {} if the checkpoint or the run has another schedule. Throws ConfigError
// where it began at another rate or went by another metric than the run's, DataError.
schedule::PlateauState plateau_in(const checkpoint::ValueView& saved, const Scheduler& run);

}  // namespace lockstep::train
