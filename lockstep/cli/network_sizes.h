// The sizes of a network whose weights are there and whose data are not.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/train/recipe.h"

namespace lockstep::cli {

struct NetworkSizes {
  int64_t channels = 3;  // of its images
  int64_t classes = 0;
};

// Those of the weights in a state dict, by the recipe's first and last layer. Throws ConfigError for another network's,
// and for a recipe whose network has no such layers.
NetworkSizes sizes_in(const checkpoint::Dict& state, const train::Recipe& recipe, const std::string& file);

// The recipe's network of these sizes.
train::Model make_network(const train::Recipe& recipe, const NetworkSizes& sizes);

}  // namespace lockstep::cli
