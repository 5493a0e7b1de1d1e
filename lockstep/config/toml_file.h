// TOML files of options: `--config FILE` reads one, and a run keeps what it was told in its config.toml.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/config/tokenizer.h"
#include "lockstep/config/train_options.h"

namespace lockstep::config {

// The keys and values of a file, as the command line would have had them ("lr" → "0.1"). Throws ConfigError: no such
// file, not TOML (with the line), a key that is no option (with the nearest), a value that is no plain one.
// `shapes` may be in any order; "recipe" is a key as well.
std::vector<GivenOption> read_toml(const std::string& path, std::span<const OptionShape> shapes);

// Every option that is set, defaults included, so that the file by itself repeats the run: all but `out` and `resume`.
std::string to_toml(const TrainOptions& options);

}  // namespace lockstep::config
