// A schedule of learning rates as a checkpoint's values, and the difference between two.
#pragma once

#include <string>

#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/schedule/schedule.h"

namespace lockstep::loop {

// Returns the values that the rates of all steps depend on, under the names of the options: {"shape": "cosine",
// "t_max": 1000, "base_lr": 0.01, …}.
checkpoint::Dict to_values(const schedule::ScheduleOptions& options);

// Returns the first difference of two such dicts: "t_max was 1000, and is 2000". Empty if there is none.
std::string difference(const checkpoint::Dict& was, const checkpoint::Dict& is);

}  // namespace lockstep::loop
