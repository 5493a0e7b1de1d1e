// A run's numbers, once data and recipe are known: options with the recipe's defaults filled in. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/schedule/schedule.h"
#include "lockstep/train/options/train_options.h"
#include "lockstep/train/recipe.h"

namespace lockstep::train {

// How the learning rate came about where --scale-lr asks for more than the plain one.
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
  int64_t total_steps = 0;
  std::string optimizer;
  optim::NamedOptions optimizer_options;
  schedule::ScheduleOptions schedule;
  int64_t steps_per_unit = 1;  // the schedule counts so many steps as one
  std::string plateau_metric = "loss";
  std::optional<LrScaling> lr_scaling;
  bool channels_last = false;
  int64_t eval_batch = 256;  // samples a chunk
  int64_t eval_every = 0;    // steps; 0: at the end alone
  int64_t save_every = 0;    // steps; 0: at the end alone

  int64_t global_batch() const { return int64_t{lanes} * batch_size; }
  // The epoch that step `step`, counted from 0, belongs to, and its place in it.
  int64_t epoch_of(int64_t step) const { return step / steps_per_epoch; }
  int64_t step_in_epoch(int64_t step) const { return step % steps_per_epoch; }
};

// The options with the recipe's defaults where they say nothing, and the run's lanes: what the run takes. Throws
// ConfigError for a global batch that the lanes can't share.
TrainOptions fill_defaults(const TrainOptions& options, const Defaults& defaults, int lanes);

// Throws ConfigError for what does not fit together: a global batch that the lanes can't share, a warm-up longer than
// the run.
Plan make_plan(const TrainOptions& options, const Defaults& defaults, int lanes, int64_t train_samples);

}  // namespace lockstep::train
