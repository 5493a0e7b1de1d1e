// Makes the parts of a run from its options: opens the data, makes or loads the model, finds the position to resume
// from, resolves lanes and threads.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lockstep/train/options/train_options.h"
#include "lockstep/train/parts.h"
#include "lockstep/train/recipe.h"
#include "lockstep/train/run_disks.h"
#include "lockstep/world/world.h"

namespace lockstep::train {

// Sets up a run. `options.out` is the run's folder; it exists on the savers of `disks`, with everything
// that a run needs there. A collective.
// Throws ConfigError, DataError.
Parts set_up(const TrainOptions& options, std::shared_ptr<Recipe> recipe, std::shared_ptr<World> world,
             const RunDisks& disks = {});

// Returns the options of a level other than auto. resolve_amp (auto_amp.h) replaces auto.
amp::Options amp_options(amp::AmpLevel level, amp::HalfType half);

// Puts the model's weights into the memory format that the plan asks for.
void set_memory_format(torch::nn::Module& module, bool channels_last);

}  // namespace lockstep::train
