#include "lockstep/train/recipe.h"

#include "lockstep/base/error.h"

namespace lockstep::train {

OpenInput Recipe::input_opener(const InputRequest& /*request*/) const {
  throw ConfigError("the recipe ", name(), " takes no files");
}

}  // namespace lockstep::train
