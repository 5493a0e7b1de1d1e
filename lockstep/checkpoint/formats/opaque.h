// What a reader that ignores unknown classes leaves in a tree in their place.
#pragma once

#include <string>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// The paths to the Opaque values of a tree, joined by "/" as describe() has them: "hyper_parameters/loss".
std::vector<std::string> opaque_paths(const Value& value);

// The tree without them: for writers, which refuse them. Dicts lack their keys; in lists and tuples, and as the root,
// they become None.
Value without_opaque(const Value& value);

}  // namespace lockstep::checkpoint
