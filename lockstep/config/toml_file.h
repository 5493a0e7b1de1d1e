// TOML files of options: `--config FILE` reads one, and a run keeps what it was told in its config.toml.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/config/option_set.h"

namespace lockstep::config {

// The keys and values of a file, as the command line would have had them ("lr" → "0.1"). Throws ConfigError: no such
// file, not TOML (with the line), a key that is no option (with the nearest), a value that is no plain one.
std::vector<GivenOption> read_toml(const std::string& path, std::span<const OptionShape> shapes);

// Every option that is set and belongs in a run's file, defaults included, so that the file by itself repeats the run.
std::string to_toml(const OptionSet& options);

}  // namespace lockstep::config
