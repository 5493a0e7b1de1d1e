// The options of --schedule: one row each, which says what schedules it goes with.
#pragma once

#include "lockstep/config/train_options.h"

namespace lockstep::config {

OptionTable<TrainOptions> schedule_rows();

// Throws ConfigError for an option that schedule `kind` has no use for, and for one that it needs and has not got.
void check_schedule(const TrainOptions& options, ScheduleKind kind);

// "10,25,50": whole numbers above 0 in ascending order. Throws ConfigError.
std::vector<int64_t> read_milestones(std::string_view name, const std::string& text);
std::string write_milestones(const std::vector<int64_t>& milestones);

}  // namespace lockstep::config
