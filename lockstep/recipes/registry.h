// The recipes by name.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lockstep/train/recipe.h"

namespace lockstep::recipes {

// What a recipe is made with; unset: its own.
struct RecipeOptions {
  std::optional<config::Arch> arch;  // imagenet
  std::optional<int> size;           // imagenet, unet: pixels a side
};

// Throws ConfigError that lists the recipes for a name that none has.
std::shared_ptr<const train::Recipe> find_recipe(const std::string& name, const RecipeOptions& options = {});

}  // namespace lockstep::recipes
