// lockstep-worker: one rank. The front starts it, or torchrun, mpirun, srun.
#include <unistd.h>

#include "commands.h"
#include "lockstep/base/error.h"
#include "lockstep/base/run_main.h"
#include "lockstep/base/stack_on_signal.h"
#include "lockstep/recipes/registry.h"

namespace lockstep::worker {
namespace {

constexpr const char* kHelp = R"(Usage: lockstep-worker COMMAND [options]

One rank of a run, or a command without ranks, as a process by itself: for torchrun, mpirun, srun and `lockstep launch`,
which say by their variables which rank it is. `lockstep COMMAND` starts all ranks of this machine, and restarts them.

Commands: train, eval, predict, export, bench, inspect, verify, diff, convert, draw, pack, data. `lockstep-worker COMMAND
--help` says more.
)";

int run(const Arguments& words) {
  const std::string name = words.empty() ? "" : words[0];
  const Arguments args(words.empty() ? words.end() : words.begin() + 1, words.end());
  if (name == "--help" || name == "-h" || name == "help") return print(kHelp), 0;
  if (name == "train") return cli::train({"lockstep"}, args, recipes::make_recipes());
  if (name == "eval") return cli::eval({"lockstep"}, args, recipes::make_recipes());
  if (name == "predict") return cli::predict({"lockstep"}, args, recipes::make_recipes());
  if (name == "export") return cli::export_network({"lockstep"}, args, recipes::make_recipes());
  if (name == "bench") return bench(args);
  if (name == "inspect") return inspect(args);
  if (name == "verify") return verify(args);
  if (name == "diff") return diff(args);
  if (name == "convert") return convert(args);
  if (name == "draw") return draw(args);
  if (name == "pack") return pack(args);
  if (name == "data") return data(args);
  throw ConfigError(name.empty() ? "no command" : name,
                    ": lockstep-worker trains, evaluates, predicts, exports, measures, inspects, converts and packs; "
                    "all else is lockstep's");
}

}  // namespace
}  // namespace lockstep::worker

int main(int argc, char** argv) {
  using namespace lockstep;
  write_stack_for_launcher();
  // Without the teardown of libtorch, which frees for a tenth of a second what the kernel frees at once.
  _exit(run_main([&] { return worker::run({argv + 1, argv + argc}); }));
}
