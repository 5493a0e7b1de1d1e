// What `lockstep ps` prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/launch/runs/run_facts.h"

namespace lockstep::launch {

// "45s", "12m", "2h05m" or "3d04h". Pure.
std::string short_time(int64_t seconds);

// Returns the runs as a table of at most 80 columns, in which long names lose their beginning: a line for each, or for
// none of them the line `nothing`. `host` is this one, and `now` in seconds since 1970. `all`: how runs have ended is
// shown too. Pure.
std::string run_table(const std::vector<RunFacts>& runs, bool all, const std::string& host, int64_t now,
                      const std::string& nothing);

// Returns the same as a JSON array of objects, with null for what is not known. Pure.
std::string runs_json(const std::vector<RunFacts>& runs, int64_t now);

}  // namespace lockstep::launch
