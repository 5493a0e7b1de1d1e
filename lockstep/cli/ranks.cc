#include "lockstep/cli/ranks.h"

#include <unistd.h>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/rendezvous/give_up.h"
#include "lockstep/rendezvous/place/environment.h"
#include "lockstep/train/device_facts.h"
#include "lockstep/world/backends.h"

namespace lockstep::cli {

namespace {

rendezvous::Place own_place() {
  return rendezvous::find_place({.parent = rendezvous::launcher_pid()}, [](const char* name) { return env(name); });
}

}  // namespace

bool is_launched() { return own_place().launcher != "none"; }

bool may_span_nodes() {
  const rendezvous::Place place = own_place();
  return place.size != place.local_size;  // which is not known everywhere yet
}

bool starts_ranks(const Program& program, int nproc, bool asked) {
  if (nproc == 1 || is_launched()) return false;
  if (program.of_ranks.empty() && asked) {
    throw ConfigError("--nproc ", nproc,
                      ": no launcher has started this rank; start several by lockstep, torchrun, mpirun or srun");
  }
  return !program.of_ranks.empty();
}

void check_world(const InitOptions& options) { usable_backend(options, own_place()); }

int prepare_rank(const std::function<void()>& prepare) {
  try {
    prepare();
    return 0;
  } catch (const Error& error) {
    const rendezvous::Place place = own_place();
    if (place.size == 1 || place.launcher == "lockstep") throw;
    // At once, for the others may be long in coming.
    write_all(STDERR_FILENO, cat("error: rank ", place.rank, ": ", shown(error.what()), '\n'));
    rendezvous::give_up(place, error);
    return error.exit_code();
  }
}

c10::Device open_device(const train::DeviceChoice& device, const train::NodeRanks& ranks, const Logger& log,
                        bool quiet) {
  const c10::Device opened = train::open_device(device, ranks);
  if (quiet) return opened;
  const std::string line = train::log_line(train::facts_of(opened));
  if (opened.is_cpu()) {
    log.debug(line);
  } else {
    log.info(line);
  }
  return opened;
}

}  // namespace lockstep::cli
