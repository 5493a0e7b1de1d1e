// The recipes by name.
#pragma once

#include <memory>
#include <string>

#include "lockstep/train/recipe.h"

namespace lockstep::recipes {

// Throws ConfigError that lists the recipes for a name that none has.
std::shared_ptr<const train::Recipe> find_recipe(const std::string& name);

}  // namespace lockstep::recipes
