// The schedules by name, and how options make one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/schedule/options/lr_options.h"
#include "lockstep/schedule/schedule.h"

namespace lockstep::schedule {

// What a schedule needs to know of the run.
struct RunFacts {
  double lr = 0;               // scaled
  double lr_factor = 1;        // by --scale-lr
  int64_t default_warmup = 0;  // steps, where --warmup says nothing
  int64_t epochs = 1;
  int64_t steps_per_epoch = 1;
};

std::vector<std::string_view> schedule_names();

// How many of the run's steps the schedule counts as one.
int64_t steps_per_unit(const LrOptions& options, int64_t steps_per_epoch);

// The schedule that options.schedule names. Throws ConfigError for options that it has no use for or can't do without,
// and for a horizon that does not hold the warm-up.
ScheduleOptions make_schedule(const LrOptions& options, const RunFacts& facts);

}  // namespace lockstep::schedule
