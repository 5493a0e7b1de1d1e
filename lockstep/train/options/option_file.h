// A file of options for runs: one that a user wrote for --config, or the config.toml of a run.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/option_set.h"

namespace lockstep::train {

struct OptionFile {
  std::string path;                          // empty: there is no file
  std::string recipe;                        // empty: the file does not say
  std::string parent;                        // the checkpoint from which the run was forked; empty: from none
  std::vector<config::GivenOption> options;  // without the two above
};

// Reads a file; an empty path gives an empty OptionFile. `shapes` are those of all options that it may hold. Throws
// ConfigError.
OptionFile read_option_file(const std::string& path, std::span<const config::OptionShape> shapes);

// Returns the line of a run's file that names its parent; empty if it has none.
std::string parent_line(const std::string& parent);

// Returns the value of an option in `given`; nothing if it is not there.
std::optional<std::string> value_of(std::span<const config::GivenOption> given, std::string_view name);

// Does the same, and takes the option out.
std::optional<std::string> take(std::vector<config::GivenOption>& given, std::string_view name);

}  // namespace lockstep::train
