// TOML files of options: `--config FILE` reads one, and a run keeps its options in its config.toml.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "lockstep/config/option_set.h"

namespace lockstep::config {

// Returns the keys and values of a file as the command line would have given them ("lr" → "0.1",
// [10, 20] → "10,20" where the option is a list, true → a bare option where its value may be left out). Throws
// ConfigError for a missing file, for text that is not TOML (with the line), for a key that is no option (with the
// nearest one), and for a value that is not a plain one, or a table that is no option's.
std::vector<GivenOption> read_toml(const std::string& path, std::span<const OptionShape> shapes);

// Returns the keys of any file of options and their values as it writes them, texts without quotation marks: for
// programs that don't know which options it may hold. Throws ConfigError for a missing file and for text that is not
// TOML.
std::vector<GivenOption> read_any_toml(const std::string& path);

// Returns every option that is set and belongs in a run's file, defaults included, so that the file by itself repeats
// the run. Of several sets the file is one, whose tables come last.
std::string to_toml(std::initializer_list<const OptionSet*> sets);
inline std::string to_toml(const OptionSet& options) { return to_toml({&options}); }

}  // namespace lockstep::config
