// The schedules by name, and the making of one from options.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/schedule/options/lr_options.h"
#include "lockstep/schedule/schedule.h"

namespace lockstep::schedule {

// What of the optimizer a cycle's momentum drives.
enum class Momentum { kNone, kMomentum, kBeta1 };

// The facts of a run that its schedule depends on.
struct RunFacts {
  double lr = 0;               // after --scale-lr
  double lr_factor = 1;        // the factor of --scale-lr
  int64_t default_warmup = 0;  // steps, where --warmup says nothing
  int64_t epochs = 1;
  int64_t steps_per_epoch = 1;
  Momentum momentum = Momentum::kMomentum;
};

std::vector<std::string_view> schedule_names();
// Whether there is such a schedule and it has a warm-up of its own.
bool warms_up(const std::string& name);

// Returns how many of the run's steps the schedule counts as one.
int64_t steps_per_unit(const LrOptions& options, int64_t steps_per_epoch);

// Makes the schedule that options.schedule names. Throws ConfigError for options that it does not have, for missing
// ones that it needs, and for a horizon that is too short for the warm-up.
ScheduleOptions make_schedule(const LrOptions& options, const RunFacts& facts);

}  // namespace lockstep::schedule
