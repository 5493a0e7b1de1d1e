#include "lockstep/recipes/registry.h"

#include "lockstep/base/error.h"
#include "lockstep/recipes/mnist.h"

namespace lockstep::recipes {

std::shared_ptr<const train::Recipe> find_recipe(const std::string& name) {
  if (name == "mnist") return std::make_shared<Mnist>();
  throw ConfigError("recipe ", name, ": not available yet; use mnist");
}

}  // namespace lockstep::recipes
