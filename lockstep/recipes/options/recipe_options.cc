#include "lockstep/recipes/options/recipe_options.h"

#include <memory>

#include "lockstep/base/error.h"

namespace lockstep::recipes {
namespace {

void declare_size(config::OptionSet& options, int* size) {
  options.number("size", "PX", "pixels a side of images", size, 16, 4096, config::Effect::kIdentity);
}

}  // namespace

void ImagenetOptions::declare(config::OptionSet& options) {
  options.word("arch", "the network", &arch, config::Effect::kIdentity);
  declare_size(options, &size);
}

void ImagenetOptions::check() const {
  // Below, convolutions see nothing but padding, and oneDNN's gradients of such weights are not the same in every
  // process.
  if (size < 32)
    throw ConfigError("--size ", size, ": imagenet's networks halve images five times; expected 32 or more");
}

void UNetOptions::declare(config::OptionSet& options) {
  declare_size(options, &size);
  options.number("width", "N", "channels of the first level; each further one has twice as many", &width, 1, 1024,
                 config::Effect::kIdentity);
}

// A new recipe is one more line here.
train::RecipeDescriptions describe_recipes() {
  return {std::make_shared<MnistOptions>(), std::make_shared<UNetOptions>(), std::make_shared<ImagenetOptions>()};
}

}  // namespace lockstep::recipes
