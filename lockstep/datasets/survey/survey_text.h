// A survey as people read it, and as scripts do.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lockstep/datasets/survey/survey.h"

namespace lockstep::datasets {

// Some lines, the last of which says how to train on the data, or how many problems there are.
std::string text_of(const Survey& survey);

nlohmann::ordered_json json_of(const Survey& survey);

}  // namespace lockstep::datasets
