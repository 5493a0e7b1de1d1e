// The line of `lockstep launch`, cut into the launcher's options and the program's own words. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/config/option.h"

namespace lockstep::apps {

struct LaunchLine {
  std::vector<std::string> options;  // with the names and dashes of `shapes`
  std::vector<std::string> program;  // the program and its arguments, as they were
  std::string local_rank_as;         // "--local-rank" or "--local_rank", as it was spelled; empty: it was not
};

// Cuts the line at the first word that is neither an option nor an option's value, or at "--". Throws ConfigError for
// an option that `shapes` lack, with the nearest one, and for blanks around "=".
LaunchLine split_launch_line(const std::vector<std::string>& args, std::span<const config::OptionShape> shapes);

// The text of --help, around the description of the options.
std::string launch_help(const std::string& rows);

}  // namespace lockstep::apps
