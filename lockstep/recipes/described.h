// A recipe whose description is a class of its own, so that a front can use it without linking libtorch.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lockstep/train/recipe.h"

namespace lockstep::recipes {

// `Options` is a RecipeDescription whose fields are the recipe's own options.
template <typename Options>
class Described : public train::Recipe {
 public:
  explicit Described(Options options = {}) : options_(std::move(options)) {}

  std::string name() const final { return options_.name(); }
  std::vector<train::Preset> presets() const final { return options_.presets(); }
  std::string usual_preset(const std::string& data, const std::vector<config::GivenOption>& given) const final {
    return options_.usual_preset(data, given);
  }
  std::vector<config::Spelling> spellings() const final { return options_.spellings(); }
  void declare(config::OptionSet& options) final { options_.declare(options); }
  void resolve(const std::string& data) final { options_.resolve(data); }
  void check() const final { options_.check(); }

 protected:
  Options options_;
};

}  // namespace lockstep::recipes
