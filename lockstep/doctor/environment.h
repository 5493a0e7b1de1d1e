// What a rank's environment says of its place, as `lockstep doctor --env` prints it.
#pragma once

#include <string>

#include "lockstep/rendezvous/place/environment.h"

namespace lockstep::doctor {

// A table: the place, the variables that say so, and other launchers' variables that were seen.
std::string to_text(const rendezvous::PlaceReport& report);
// The same as JSON, with null for what is not known:
//   {"launcher", "rank", "world_size", "local_rank", "local_world_size", "node", "rendezvous", "gpu", "error",
//    "variables": {NAME: VALUE, …}, "others": [{"launcher", "complete", "says", "variables"}, …]}
std::string to_json(const rendezvous::PlaceReport& report);

}  // namespace lockstep::doctor
