// Who starts a command's ranks, and how a rank gets ready to join the others.
#pragma once

#include <functional>

#include "lockstep/base/log.h"
#include "lockstep/cli/commands.h"
#include "lockstep/train/device.h"
#include "lockstep/world/world.h"

namespace lockstep::cli {

// Whether a launcher has started this process as a rank. Throws ConfigError for an environment that contradicts itself.
bool is_launched();

// Whether the launcher may have started ranks on other nodes, too.
bool may_span_nodes();

// Whether this process starts the ranks: no launcher has, there are `nproc`, several, and the program can be started as
// a rank. Throws ConfigError if it can't and they were `asked` for, rather than recalled from another start.
bool starts_ranks(const Program& program, int nproc, bool asked = true);

// Throws ConfigError if this machine lacks what init(options) needs: before it, for prepare_rank().
void check_world(const InitOptions& options);

// Calls `prepare`, which reads this process's command line and checks it before the process joins others. Throws what
// it throws, but on one of several ranks that another launcher has started: there it prints the error, tells it to the
// other ranks, which would wait for this one, and returns its exit code. Returns 0 without an error.
int prepare_rank(const std::function<void()>& prepare);

// Opens this rank's device and, unless `quiet`, says in its log what it is: of a GPU always, of a CPU if LOCKSTEP_LOG
// is debug. Throws as train::open_device().
c10::Device open_device(const train::DeviceChoice& device, const train::NodeRanks& ranks, const Logger& log,
                        bool quiet = false);

}  // namespace lockstep::cli
