#include "lockstep/recipes/registry.h"

#include "lockstep/recipes/imagenet.h"
#include "lockstep/recipes/mnist.h"
#include "lockstep/recipes/unet.h"

namespace lockstep::recipes {

// A new recipe is one more line here.
std::vector<std::shared_ptr<train::Recipe>> make_recipes() {
  return {std::make_shared<Mnist>(), std::make_shared<UNet>(), std::make_shared<Imagenet>()};
}

}  // namespace lockstep::recipes
