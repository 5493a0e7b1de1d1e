#include "lockstep/recipes/registry.h"

#include "lockstep/base/error.h"
#include "lockstep/recipes/imagenet.h"
#include "lockstep/recipes/mnist.h"
#include "lockstep/recipes/unet.h"

namespace lockstep::recipes {

std::shared_ptr<const train::Recipe> find_recipe(const std::string& name, const RecipeOptions& options) {
  if (name == "mnist") return std::make_shared<Mnist>();
  if (name == "imagenet") {
    return std::make_shared<Imagenet>(options.arch.value_or(config::Arch::kResnet18), options.size.value_or(64));
  }
  if (name == "unet") return std::make_shared<UNet>(options.size.value_or(64));
  throw ConfigError("recipe ", name, ": there is none; use mnist, unet or imagenet");
}

}  // namespace lockstep::recipes
