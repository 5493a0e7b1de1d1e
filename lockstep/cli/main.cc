#include "lockstep/cli/main.h"

#include <unistd.h>

#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/run_main.h"
#include "lockstep/base/stack_on_signal.h"
#include "lockstep/config/values.h"

namespace lockstep::cli {
namespace {

int run(const Program& program, const Arguments& args, const Recipes& recipes) {
  const std::string name = args.empty() ? "" : args[0];
  const Arguments rest(args.empty() ? args.end() : args.begin() + 1, args.end());
  if (name == "train") return train(program, rest, recipes);
  if (name == "eval") return eval(program, rest, recipes);
  if (name == "predict") return predict(program, rest, recipes);
  if (name == "export") return export_network(program, rest, recipes);
  if (name == "--help" || name == "-h") {
    print(cat("Usage: ", program.name, " train|eval|predict|export RECIPE [options]\n\n`", program.name,
              " train --help` lists the recipes and options.\n"));
    return 0;
  }
  const std::vector<std::string> known = {"train", "eval", "predict", "export"};
  throw ConfigError(name.empty() ? "which command? train, eval, predict or export"
                                 : cat(name, ": expected train, eval, predict or export"),
                    config::did_you_mean(name, known));
}

}  // namespace

int main(int argc, char** argv, const Recipes& recipes) {
  std::error_code no_proc;  // then it can't be started anew
  const Program program{.name = std::filesystem::path(argv[0]).filename().string(),
                        .of_ranks = std::filesystem::read_symlink("/proc/self/exe", no_proc).string()};
  write_stack_for_launcher();
  // Without the teardown of libtorch, which frees for a tenth of a second what the kernel frees at once.
  _exit(run_main([&] { return run(program, {argv + 1, argv + argc}, recipes); }));
}

}  // namespace lockstep::cli
