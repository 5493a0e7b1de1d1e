// What a command line knows of a recipe: its name, presets and own options. Links no libtorch.
#pragma once

#include <string>
#include <vector>

#include "lockstep/config/option_set.h"

namespace lockstep::train {

class RecipeDescription {
 public:
  virtual ~RecipeDescription() = default;
  virtual std::string name() const = 0;
  // Other people's settings, by name, beside its own.
  virtual std::vector<std::string> presets() const { return {}; }
  // The recipe's own options, bound to fields of this object: they are read before anything else is asked of it.
  virtual void declare(config::OptionSet& /*options*/) {}
  // Throws ConfigError for values that single options can't judge.
  virtual void check() const {}
};

}  // namespace lockstep::train
