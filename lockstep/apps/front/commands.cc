#include "commands.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "lockstep/apps/commands/bench_command.h"
#include "lockstep/apps/commands/plain_commands.h"
#include "lockstep/base/board.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/launch/launcher.h"
#include "lockstep/launch/resumed.h"
#include "lockstep/launch/run_directory.h"
#include "lockstep/parallel/options/lanes.h"
#include "lockstep/recipes/options/recipe_options.h"
#include "lockstep/train/options/eval_command.h"
#include "lockstep/train/options/train_command.h"

namespace lockstep::front {
namespace {

using Launcher = launch::Launcher;

std::vector<std::string> worker_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {worker_program()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

int threads_of(int wanted, int lanes) { return wanted > 0 ? wanted : parallel::default_threads(usable_cores(), lanes); }

// A command that keeps no run: its results go to standard output.
int run_workers(const Arguments& arguments, const parallel::ProcessOptions& processes, bool json) {
  Launcher launcher({.command = worker_command(arguments),
                     .nproc = processes.nproc,
                     .threads = threads_of(processes.threads, processes.nproc),
                     .only_rank0_on_stdout = json,
                     .stop_by = Launcher::StopBy::kSignal,
                     .own_workers = true});
  return launcher.run();
}

}  // namespace

std::string worker_program() {
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
  train::TrainCommand command("lockstep", recipes::describe_recipes());
  const auto find_config = [](const train::TrainOptions& asked) { return launch::find_resumed_config(asked); };
  if (const auto help = command.read(args, usable_cores(), find_config)) return print(*help), 0;
  train::TrainOptions& options = command.options();
  worker_program();  // it is there, before anything is made
  launch::check_inputs(options);
  const auto run = launch::RunDirectory::prepare(options);
  options.out = run.path();
  options.resume = run.resume();
  if (!run.lock().warning().empty()) Logger::from_environment("").warning(run.lock().warning());
  const parallel::ParallelOptions& processes = options.parallel;
  Launcher launcher({.command = worker_command(command.arguments()),
                     .nproc = processes.nproc,
                     .threads = threads_of(processes.threads, processes.lanes_of(processes.nproc)),
                     .log_dir = run.logs(),
                     .error_dir = run.errors(),
                     .resume_command = command.resume_command(run.path()),
                     .run_lock = run.lock().descriptor(),
                     .own_workers = true});
  const int code = launcher.run();
  if (launcher.ended_by_plain_mistake()) run.discard_if_unused();
  return code;
}

int eval(const Arguments& args) {
  train::EvalCommand command("lockstep", recipes::describe_recipes());
  if (const auto help = command.read(args)) return print(*help), 0;
  return run_workers(command.arguments(), command.options().processes, command.options().json);
}

int bench(const Arguments& args) {
  apps::BenchCommand command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const apps::BenchOptions& options = command.options();
  if (options.kind == apps::BenchKind::kStartup) return bench_startup(options.processes.nproc, options.json);
  parallel::ProcessOptions processes = options.processes;
  if (processes.nproc == 0) processes.nproc = std::clamp(usable_cores(), 2, kMaxLocalRanks);
  return run_workers(command.arguments(), processes, options.json);
}

int inspect(const Arguments& args) {
  apps::Command<apps::InspectOptions> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  return run_workers(command.arguments(), {}, command.options().json);
}

int launch(const Arguments& args) {
  apps::Command<apps::LaunchOptions> line;
  if (const auto help = line.read(args)) return print(*help), 0;
  const apps::LaunchOptions& options = line.options();
  std::vector<std::string> command = options.program;
  if (std::filesystem::path(command[0]).extension() == ".py") command.insert(command.begin(), "python3");
  command[0] = launch::find_program(command[0]);
  if (!options.log_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.log_dir, error);
    if (error) throw IoError("--log-dir ", options.log_dir, ": ", errno_text(error.value()));
  }
  const parallel::ProcessOptions& processes = options.processes;
  Launcher launcher({.command = std::move(command),
                     .nproc = processes.nproc,
                     .threads = threads_of(processes.threads, processes.nproc),
                     .keep_threads = processes.threads == 0,
                     .log_dir = options.log_dir,
                     .stop_by = Launcher::StopBy::kSignal,
                     .lines_at_once = true});
  return launcher.run();
}

}  // namespace lockstep::front
