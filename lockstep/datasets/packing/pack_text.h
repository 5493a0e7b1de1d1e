// What was packed, as people read it, and as scripts do.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lockstep/datasets/packing/pack.h"

namespace lockstep::datasets {

// Some lines, the last of which says how to train on it. `out` is the folder as the user called it.
std::string text_of(const PackResult& result, const std::string& out, double seconds);

nlohmann::ordered_json json_of(const PackResult& result, double seconds);

}  // namespace lockstep::datasets
