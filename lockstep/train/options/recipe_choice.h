// Which of a program's recipes a line names, and the options that come with it.
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

  // The first of `args` that is a recipe's name; empty if none is.
  std::string named_in(const std::vector<std::string>& args) const;

  // Rows for reading a line whose recipe is not known yet: `common` and the options of all recipes.
  std::vector<config::OptionShape> shapes(const config::OptionSet& common) const;

  // The recipe of this name, whose own options are declared in `options`. Throws ConfigError that lists the recipes,
  // and the nearest, if there is none.
  std::shared_ptr<RecipeDescription> choose(const std::string& name, config::OptionSet& options) const;

  // Throws ConfigError for an option of other recipes than `recipe`, whose options are all in `options`.
  void refuse_others(std::span<const config::GivenOption> given, const std::string& recipe,
                     const config::OptionSet& options) const;

 private:
  RecipeDescriptions recipes_;
  std::vector<std::string> names_;
  std::vector<std::vector<config::OptionShape>> own_;  // of each recipe
};

// Throws ConfigError unless the recipe has the preset; empty is its own settings.
void check_preset(const RecipeDescription& recipe, const std::string& preset);

}  // namespace lockstep::train
