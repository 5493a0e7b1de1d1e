// The plan of a run: its numbers, from the options, the recipe's defaults and the size of the data. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/schedule/schedule.h"
#include "lockstep/train/options/train_options.h"
#include "lockstep/train/recipe.h"

namespace lockstep::train {

// The scaling of the learning rate by --scale-lr.
struct LrScaling {
  std::string rule;  // "linear", "sqrt"
  double unscaled_lr = 0;
  double factor = 1;
  int64_t base_batch = 1;  // samples that the unscaled rate is for
};

struct Plan {
  int lanes = 1;
  int batch_size = 1;  // samples a lane
  int64_t steps_per_epoch = 0;
  int64_t epochs = 0;
  int64_t first_epoch = 0;  // counted from 0
  int64_t total_steps = 0;
  std::string optimizer;
  optim::NamedOptions optimizer_options;
  optim::GroupingOptions grouping;  // of the parameters
  schedule::ScheduleOptions schedule;
  int64_t steps_per_unit = 1;  // how many steps the schedule counts as one
  std::string plateau_metric = "loss";
  std::optional<LrScaling> lr_scaling;
  bool channels_last = false;
  int64_t eval_batch = 256;  // samples a chunk
  int64_t eval_every = 0;    // steps; 0: at the end alone
  int64_t save_every = 0;    // steps; 0: at the end alone, or by the clock
  double save_seconds = 0;   // since the last save; 0: not by the clock

  int64_t global_batch() const { return int64_t{lanes} * batch_size; }
  // Return the epoch that step `step`, counted from 0, belongs to, and its place in that epoch.
  int64_t epoch_of(int64_t step) const { return first_epoch + step / steps_per_epoch; }
  int64_t step_in_epoch(int64_t step) const { return step % steps_per_epoch; }
};

// Whether images lie in channels_last: as asked, or else in the format that is faster for the recipe's model.
bool takes_channels_last(ChannelsLast asked, const Defaults& defaults);

// Returns the options that the run uses: unset ones filled in with the recipe's defaults, and the run's lanes. Throws
// ConfigError for a global batch that the lanes can't share.
TrainOptions fill_defaults(const TrainOptions& options, const Defaults& defaults, int lanes);

// Returns the options with everything that was left open as the plan has it, so that they repeat the run by themselves:
// fill_defaults(), and the numbers that the plan derives. What each start chooses anew for its ranks stays open: the
// backend, the threads that load data, and whether the optimizer is sharded.
TrainOptions resolve_options(const TrainOptions& options, const Defaults& defaults, const Plan& plan);

// Makes the plan. Throws ConfigError for options that do not fit together, such as a global batch that the lanes can't
// share or a warm-up longer than the run.
Plan make_plan(const TrainOptions& options, const Defaults& defaults, int lanes, int64_t train_samples);

}  // namespace lockstep::train
