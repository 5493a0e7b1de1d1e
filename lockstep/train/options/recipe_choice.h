// The choice of a recipe by its name on the command line, and the options that come with it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/config/option_set.h"
#include "lockstep/train/options/recipe_description.h"

namespace lockstep::train {

using RecipeDescriptions = std::vector<std::shared_ptr<RecipeDescription>>;

class RecipeChoice {
 public:
  explicit RecipeChoice(RecipeDescriptions recipes);

  const std::vector<std::string>& names() const { return names_; }

  // Returns the first of `args` that is a recipe's name, or an empty string if none is.
  std::string named_in(const std::vector<std::string>& args) const;

  // Returns the rows for reading a line whose recipe is not known yet: `common` and the options of all recipes.
  std::vector<config::OptionShape> shapes(const config::OptionSet& common) const;

  // Returns other people's names for options: those of the recipe that is named, or else of all recipes.
  std::vector<config::Spelling> spellings(const std::string& recipe) const;

  // Returns the recipe of this name and declares its own options in `options`. Throws ConfigError that lists the
  // recipes, and names the nearest one, if there is none of this name.
  std::shared_ptr<RecipeDescription> choose(const std::string& name, config::OptionSet& options) const;

  // Throws ConfigError for a given option that belongs to other recipes only. `options` holds all rows that `recipe`
  // takes.
  void refuse_others(std::span<const config::GivenOption> given, const std::string& recipe,
                     const config::OptionSet& options) const;

 private:
  RecipeDescriptions recipes_;
  std::vector<std::string> names_;
  std::vector<std::vector<config::OptionShape>> own_;  // of each recipe
};

// The names of the recipe's presets.
std::vector<std::string> preset_names(const RecipeDescription& recipe);
// The recipe's own settings, where its data would ask for a preset.
inline constexpr const char* kNoPreset = "none";
// The options of the recipe's preset; none of kNoPreset and of an empty name, which mean the recipe's own settings.
// Throws ConfigError for another name.
std::vector<config::GivenOption> preset_options(const RecipeDescription& recipe, const std::string& name);

}  // namespace lockstep::train
