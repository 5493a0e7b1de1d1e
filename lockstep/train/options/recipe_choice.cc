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
    own.section("Recipes' own");
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

std::vector<config::Spelling> RecipeChoice::spellings(const std::string& recipe) const {
  std::vector<config::Spelling> all;
  for (const auto& each : recipes_) {
    if (!recipe.empty() && each->name() != recipe) continue;
    const auto own = each->spellings();
    all.insert(all.end(), own.begin(), own.end());
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

std::vector<std::string> preset_names(const RecipeDescription& recipe) {
  std::vector<std::string> names;
  for (const Preset& preset : recipe.presets()) names.push_back(preset.name);
  return names;
}

std::vector<config::GivenOption> preset_options(const RecipeDescription& recipe, const std::string& name) {
  if (name.empty() || name == kNoPreset) return {};
  for (const Preset& preset : recipe.presets()) {
    if (preset.name == name) return preset.options;
  }
  const auto names = preset_names(recipe);
  throw ConfigError("--preset ", name, ": ", recipe.name(), " has ",
                    names.empty() ? "no presets" : cat("only ", config::either(names)),
                    config::did_you_mean(name, names));
}

}  // namespace lockstep::train
