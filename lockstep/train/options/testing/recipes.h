// Two recipes for tests of command lines.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/train/options/recipe_choice.h"

namespace lockstep::train::testing_support {

struct Spiral : RecipeDescription {
  int turns = 2;

  std::string name() const override { return "spiral"; }
  std::vector<Preset> presets() const override { return {{"wide", {{"turns", "5"}, {"lr", "0.5"}}}}; }
  void declare(config::OptionSet& options) override {
    options.number("turns", "N", "turns of the spiral", &turns, 1, 9, config::Effect::kIdentity);
  }
};

struct Moons : RecipeDescription {
  std::string name() const override { return "moons"; }
};

inline RecipeDescriptions recipes() { return {std::make_shared<Spiral>(), std::make_shared<Moons>()}; }

}  // namespace lockstep::train::testing_support
