// lockstep-worker: one rank. The front starts it, or torchrun, mpirun, srun.
#include <signal.h>
#include <unistd.h>

#include "commands.h"
#include "lockstep/base/error.h"
#include "lockstep/base/run_main.h"
#include "lockstep/base/stack_on_signal.h"
#include "lockstep/recipes/registry.h"

namespace lockstep::worker {
namespace {

int run(const Arguments& words) {
  const std::string name = words.empty() ? "" : words[0];
  const Arguments args(words.empty() ? words.end() : words.begin() + 1, words.end());
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
  throw ConfigError(name,
                    ": lockstep-worker trains, evaluates, predicts, exports, measures, inspects, converts and packs; "
                    "all else is lockstep's");
}

}  // namespace
}  // namespace lockstep::worker

int main(int argc, char** argv) {
  using namespace lockstep;
  write_stack_on(SIGUSR2);  // our launcher asks so where a rank stands still
  // Without the teardown of libtorch, which frees for a tenth of a second what the kernel frees at once.
  _exit(run_main([&] { return worker::run({argv + 1, argv + argc}); }));
}
