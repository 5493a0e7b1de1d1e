// Who starts a command's ranks.
#pragma once

#include "lockstep/cli/commands.h"

namespace lockstep::cli {

// Whether a launcher has started this process as a rank. Throws ConfigError for an environment that contradicts itself.
bool is_launched();

// Whether this process starts the ranks: no launcher has, there are `nproc`, several, and the program can be started as
// a rank. Throws ConfigError if it can't and they were `asked` for, rather than recalled from another start.
bool starts_ranks(const Program& program, int nproc, bool asked = true);

}  // namespace lockstep::cli
