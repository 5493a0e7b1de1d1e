// A run's learning-rate schedule: its options with the recipe's defaults filled in. A pure function.
#pragma once

#include <cstdint>

#include "lockstep/config/train_options.h"
#include "lockstep/schedule/schedule.h"
#include "lockstep/train/recipe.h"

namespace lockstep::train {

// What a schedule needs to know of the run.
struct ScheduleFacts {
  double lr = 0;         // scaled
  double lr_factor = 1;  // by --scale-lr
  int64_t epochs = 1;
  int64_t steps_per_epoch = 1;
};

// How many of the run's steps the schedule counts as one.
int64_t steps_per_unit(const config::TrainOptions& options, int64_t steps_per_epoch);

// Throws ConfigError for options that the schedule has no use for or can't do without, and for a horizon that does not
// hold the warm-up.
schedule::ScheduleOptions schedule_of(const config::TrainOptions& options, const Defaults& defaults,
                                      const ScheduleFacts& facts);

}  // namespace lockstep::train
