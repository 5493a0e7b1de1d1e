// A process that has loaded the test program once, and forks ranks. Registering libtorch's operators takes 0.3 s of a
// processor in each program that is started, which is most of what a small rank program takes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::testing_support {

struct NewRank {
  std::vector<std::string> environment;  // "NAME=value", all of it
  int output;                            // its stdout and stderr
  std::span<const int> descriptors;      // open in it by the same numbers
};

// Forks a rank, which is a child of this process, and returns its number; nothing where ranks must be programs of their
// own: under ThreadSanitizer, and for variables that libraries read as they are loaded.
std::optional<pid_t> fork_rank(const NewRank& rank);

// Whether this process is the template: it serves its parent then, and returns false there only in each rank, whose
// environment is set.
bool serve_as_template();

}  // namespace lockstep::testing_support
