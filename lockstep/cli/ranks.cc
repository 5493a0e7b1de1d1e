#include "lockstep/cli/ranks.h"

#include <unistd.h>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/rendezvous/environment.h"

namespace lockstep::cli {

bool is_launched() {
  const auto look_up = [](const char* name) { return env(name); };
  return rendezvous::find_place({.parent = getppid()}, look_up).launcher != "none";
}

bool starts_ranks(const Program& program, int nproc, bool asked) {
  if (nproc == 1 || is_launched()) return false;
  if (program.of_ranks.empty() && asked) {
    throw ConfigError("--nproc ", nproc,
                      ": no launcher has started this rank; start several by lockstep, torchrun, mpirun or srun");
  }
  return !program.of_ranks.empty();
}

}  // namespace lockstep::cli
