// The recipes of `lockstep train`.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/train/recipe.h"

namespace lockstep::recipes {

// Returns all recipes, each with its default options.
std::vector<std::shared_ptr<train::Recipe>> make_recipes();

}  // namespace lockstep::recipes
