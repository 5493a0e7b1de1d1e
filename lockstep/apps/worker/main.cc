// lockstep-worker: one rank. The front starts it, or torchrun, mpirun, srun.
#include <unistd.h>

#include "commands.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/run_main.h"
#include "lockstep/launch/run_directory.h"

namespace lockstep::worker {
namespace {

// The front passes on what a resumed run was told; without one it is read here.
config::Command read_command(const std::vector<std::string>& arguments) {
  const bool from_front = env("LOCKSTEP_NODE_MEMORY").has_value();
  return from_front ? config::parse_command(arguments, usable_cores())
                    : launch::read_command(arguments, usable_cores());
}

int dispatch(const config::Command& command) {
  return std::visit(
      [](const auto& options) -> int {
        if constexpr (requires { run(options); }) {
          return run(options);
        } else {
          throw ConfigError("lockstep-worker trains, evaluates, measures and inspects; all else is lockstep's");
        }
      },
      command);
}

}  // namespace

void print(const std::string& text) {
  if (!write_all(STDOUT_FILENO, text)) throw IoError("standard output: can't be written");
}

}  // namespace lockstep::worker

int main(int argc, char** argv) {
  using namespace lockstep;
  // Without the teardown of libtorch, which frees for a tenth of a second what the kernel frees at once.
  _exit(run_main([&] { return worker::dispatch(worker::read_command({argv + 1, argv + argc})); }));
}
