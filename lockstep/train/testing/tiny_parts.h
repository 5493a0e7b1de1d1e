// The parts of a run of a tiny recipe, in fp32 on a world of one rank or on another one.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/train/parts.h"
#include "lockstep/train/testing/only_world.h"

namespace lockstep::train::testing_support {

inline Parts parts_of(std::shared_ptr<Recipe> recipe, std::shared_ptr<World> world = nullptr) {
  Parts parts;
  parts.recipe = std::move(recipe);
  parts.world = world == nullptr ? only_world() : std::move(world);
  parts.data = parts.recipe->open_data({.seed = 1});
  parts.model = parts.recipe->make_model(1, *parts.data.train);
  parts.optimizer = optim::make_optimizer("sgd", parts.model.module->parameters());
  parts.mixed = std::make_unique<amp::MixedPrecision>(std::vector<torch::nn::Module*>{parts.model.module.get()},
                                                      std::vector<optim::OptimizerRef>{*parts.optimizer},
                                                      amp::Options{.opt_level = amp::OptLevel::kO0});
  return parts;
}

}  // namespace lockstep::train::testing_support
