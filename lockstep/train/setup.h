// From options to the parts of a run: data opened, model made or loaded, position found, lanes and threads resolved.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lockstep/train/options/train_options.h"
#include "lockstep/train/parts.h"
#include "lockstep/train/recipe.h"
#include "lockstep/world/world.h"

namespace lockstep::train {

// A collective. `options.out` is the run's folder; it and what a run needs there exist. Throws ConfigError, DataError.
Parts set_up(const TrainOptions& options, std::shared_ptr<Recipe> recipe, std::shared_ptr<World> world);

// The header's text for these parts.
std::string header_of(const Parts& parts);

// What a level other than auto means, which resolve_amp (auto_amp.h) replaces.
amp::Options amp_options(amp::AmpLevel level, amp::HalfType half);

// Model weights in the memory format that the plan asks for.
void set_memory_format(torch::nn::Module& module, bool channels_last);

}  // namespace lockstep::train
