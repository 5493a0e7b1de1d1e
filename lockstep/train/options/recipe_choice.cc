#include "lockstep/train/options/recipe_choice.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

bool has(const std::vector<config::OptionShape>& shapes, const std::string& name) {
  return std::any_of(shapes.begin(), shapes.end(), [&name](const auto& shape) { return shape.name == name; });
}

}  // namespace

RecipeChoice::RecipeChoice(RecipeDescriptions recipes) : recipes_(std::move(recipes)) {
  for (const auto& recipe : recipes_) {
    config::OptionSet own;
    recipe->declare(own);
    names_.push_back(recipe->name());
    own_.push_back(own.shapes());
  }
}

std::string RecipeChoice::named_in(const std::vector<std::string>& args) const {
  const auto found = std::find_first_of(args.begin(), args.end(), names_.begin(), names_.end());
  return found == args.end() ? "" : *found;
}

std::vector<config::OptionShape> RecipeChoice::shapes(const config::OptionSet& common) const {
  auto all = common.shapes();
  for (const auto& own : own_) {
    for (const auto& shape : own) {
      if (!has(all, shape.name)) all.push_back(shape);
    }
  }
  return all;
}

std::shared_ptr<RecipeDescription> RecipeChoice::choose(const std::string& name, config::OptionSet& options) const {
  for (const auto& recipe : recipes_) {
    if (recipe->name() != name) continue;
    options.section("Recipe " + name);
    recipe->declare(options);
    return recipe;
  }
  if (name.empty()) throw ConfigError("which recipe? one of ", config::either(names_), " must be named");
  throw ConfigError(name, ": unknown recipe; expected ", config::either(names_), config::did_you_mean(name, names_));
}

void RecipeChoice::refuse_others(std::span<const config::GivenOption> given, const std::string& recipe,
                                 const config::OptionSet& options) const {
  for (const auto& option : given) {
    if (options.find(option.name) != nullptr) continue;
    std::vector<std::string> owners;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (has(own_[i], option.name)) owners.push_back(names_[i]);
    }
    if (owners.empty()) continue;
    throw ConfigError("--", option.name, ' ', option.value, ": goes with ", config::either(owners), " only, and ",
                      recipe, " has no such option; leave it out");
  }
}

void check_preset(const RecipeDescription& recipe, const std::string& preset) {
  const auto presets = recipe.presets();
  if (preset.empty() || std::find(presets.begin(), presets.end(), preset) != presets.end()) return;
  throw ConfigError("--preset ", preset, ": ", recipe.name(), " has ",
                    presets.empty() ? "no presets" : cat("only ", config::either(presets)),
                    config::did_you_mean(preset, presets));
}

}  // namespace lockstep::train
