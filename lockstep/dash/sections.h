// The parts of a run's page. Each is empty where there is nothing to show. Pure, but for the files of the run's folder
// that their names tell.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/dash/history.h"
#include "lockstep/launch/runs/run_facts.h"

namespace lockstep::dash {

// Its name, how it stands, and how long it will take. `now` in seconds since 1970.
std::string heading(const launch::RunFacts& run, int64_t now);
// Loss, metrics and everything else that metrics.jsonl has a number of.
std::string charts(const History& history);
// final.json's metrics.
std::string results(const std::string& folder);
// The reports in errors/, the newest first.
std::string failures(const std::string& folder);
// The last lines that it has printed.
std::string log_tail(const std::string& folder);
// config.toml.
std::string options(const std::string& folder);

}  // namespace lockstep::dash
