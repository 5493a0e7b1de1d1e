#include "commands.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "lockstep/apps/commands/bench_command.h"
#include "lockstep/apps/commands/checkpoint_commands.h"
#include "lockstep/apps/commands/convert_command.h"
#include "lockstep/apps/commands/data_commands.h"
#include "lockstep/apps/commands/plain_commands.h"
#include "lockstep/apps/commands/train_nodes.h"
#include "lockstep/base/board.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/gpus.h"
#include "lockstep/base/log.h"
#include "lockstep/bundle/environment.h"
#include "lockstep/config/inputs.h"
#include "lockstep/dash/serve.h"
#include "lockstep/launch/launcher.h"
#include "lockstep/launch/resumed.h"
#include "lockstep/launch/start.h"
#include "lockstep/parallel/options/lanes.h"
#include "lockstep/recipes/options/recipe_options.h"
#include "lockstep/train/options/eval_command.h"
#include "lockstep/train/options/export_command.h"
#include "lockstep/train/options/predict_command.h"
#include "lockstep/train/options/train_command.h"

namespace lockstep::front {

std::string worker_program() {
  if (const auto root = bundle::own_bundle()) {
    bundle::prepare_environment(*root);
    return *root + "/libexec/lockstep-worker";
  }
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = self.parent_path() / "lockstep-worker";
  if (error || access(path.c_str(), X_OK) != 0) {
    throw IoError(path, ": not there or not a program; build or install it beside lockstep");
  }
  return path;
}

void print(const std::string& text) {
  if (!write_all(STDOUT_FILENO, text)) throw IoError("standard output: can't be written");
}

int train(const Arguments& args) {
  if (const auto line = apps::launch_of_train(args, worker_program, usable_cores())) return launch(*line);
  train::TrainCommand command("lockstep", recipes::describe_recipes());
  const auto find_config = [](const train::TrainOptions& asked) {
    return launch::find_resumed_config(asked, launch::find_start(asked));
  };
  if (const auto help = command.read(args, {.cores = usable_cores()}, find_config)) {
    return print(*help + apps::kTrainNodesHelp), 0;
  }
  // Each rank of a launcher would start ranks of its own, and train alone. Whoever means that says how many.
  const bool says_ranks = std::ranges::any_of(args, [](const auto& word) { return word.starts_with("--nproc"); });
  const auto ranks = env("LOCKSTEP_NODE_MEMORY") ? env_int("WORLD_SIZE", 1, 1 << 20) : std::nullopt;
  if (ranks.value_or(1) > 1 && !says_ranks) {
    throw ConfigError("lockstep train: this is one of ", *ranks,
                      " ranks that lockstep launch has started, and each would train alone; launch lockstep-worker ",
                      "train …, which takes the same options, or say --nproc where each is to");
  }
  return launch::start_training(worker_program(), command, dash::open_beside);
}

int eval(const Arguments& args) {
  train::EvalCommand command("lockstep", recipes::describe_recipes());
  if (const auto help = command.read(args)) return print(*help), 0;
  return launch::start_evaluation(worker_program(), command);
}

int predict(const Arguments& args) {
  train::PredictCommand command("lockstep", recipes::describe_recipes());
  if (const auto help = command.read(args)) return print(*help), 0;
  const bool piped = command.options().input == "-";
  if (piped && isatty(STDIN_FILENO) != 0) {
    throw ConfigError("--input -: standard input is a terminal; pipe an image into it");
  }
  return launch::start_ranks(worker_program(), command.arguments(), {}, /*json=*/true, /*answer=*/0,
                             piped ? STDIN_FILENO : -1);
}

int export_network(const Arguments& args) {
  train::ExportCommand command("lockstep", recipes::describe_recipes());
  if (const auto help = command.read(args)) return print(*help), 0;
  return launch::start_ranks(worker_program(), command.arguments(), {}, /*json=*/false);
}

int bench(const Arguments& args) {
  apps::BenchCommand command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const apps::BenchOptions& options = command.options();
  if (options.kind == apps::BenchKind::kStartup) return bench_startup(options.processes.nproc, options.json);
  parallel::ProcessOptions processes = options.processes;
  if (processes.nproc == 0) {
    processes.nproc = std::clamp(options.on_gpus() ? visible_gpus() : usable_cores(), 2, kMaxLocalRanks);
  }
  return launch::start_ranks(worker_program(), command.arguments(), processes, options.json);
}

int inspect(const Arguments& args) {
  apps::Command<apps::InspectOptions> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  return launch::start_ranks(worker_program(), command.arguments(), {}, command.options().json);
}

int verify(const Arguments& args) {
  apps::Command<apps::VerifyOptions> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  std::vector<std::string> words = command.arguments();
  const auto& paths = command.options().paths;
  words.insert(words.begin() + 1, paths.begin(), paths.end());
  return launch::start_ranks(worker_program(), words, {}, command.options().json);
}

int diff(const Arguments& args) {
  apps::Command<apps::DiffOptions> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  return launch::start_ranks(worker_program(), command.arguments(), {}, command.options().json, apps::kExitDiffers);
}

int convert(const Arguments& args) {
  apps::Command<apps::ConvertCommand> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  return launch::start_ranks(worker_program(), command.arguments(), {}, /*json=*/false);
}

int draw(const Arguments& args) {
  apps::Command<apps::DrawCommand> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  return launch::start_ranks(worker_program(), command.arguments(), {}, command.options().json);
}

int pack(const Arguments& args) {
  apps::Command<apps::PackCommand> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  return launch::start_ranks(worker_program(), command.arguments(), {}, command.options().json);
}

int data(const Arguments& args) {
  apps::Command<apps::DataCommand> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  return launch::start_ranks(worker_program(), command.arguments(), {}, command.options().json);
}

}  // namespace lockstep::front
