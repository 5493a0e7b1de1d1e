#include "commands.h"

#include <unistd.h>

#include <filesystem>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/config/world.h"
#include "lockstep/launch/launcher.h"
#include "lockstep/launch/run_directory.h"

namespace lockstep::front {
namespace {

using launch::Launcher;

std::vector<std::string> worker_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {worker_program()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

int threads_of(int wanted, int lanes) { return wanted > 0 ? wanted : config::default_threads(usable_cores(), lanes); }

// A command that keeps no run: its results go to standard output.
template <typename Options>
int run_workers(const Options& options, int nproc, int threads, bool json) {
  Launcher launcher({.command = worker_command(config::to_arguments(options)),
                     .nproc = nproc,
                     .threads = threads_of(threads, nproc),
                     .only_rank0_on_stdout = json,
                     .stop_by = Launcher::StopBy::kSignal});
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

int run(const config::HelpCommand& help) { return write_all(STDOUT_FILENO, help.text) ? 0 : IoError::kExitCode; }

int run(const config::VersionCommand&) {
  return write_all(STDOUT_FILENO, "lockstep " LOCKSTEP_VERSION "\n") ? 0 : IoError::kExitCode;
}

int run(const config::TrainOptions& given) {
  const std::string worker = worker_program();  // before anything is made
  launch::check_inputs(given);
  const auto run = launch::RunDirectory::prepare(given);
  config::TrainOptions options = given;
  options.out = run.path();
  options.resume = run.resume();
  Launcher launcher({.command = worker_command(config::to_arguments(options)),
                     .nproc = options.nproc,
                     .threads = threads_of(options.threads, config::lanes_of(options, options.nproc)),
                     .log_dir = run.logs(),
                     .error_dir = run.errors(),
                     .resume_command = cat("lockstep train ", options.recipe, " --resume ", run.path())});
  const int code = launcher.run();
  if (launcher.ended_by_plain_mistake()) run.discard_if_unused();
  return code;
}

int run(const config::EvalOptions& options) {
  return run_workers(options, options.nproc, options.threads, options.json);
}

int run(const config::BenchOptions& options) {
  if (options.kind == config::BenchKind::kStartup) return bench_startup(options);
  return run_workers(options, options.nproc, options.threads, options.json);
}

int run(const config::InspectOptions& options) { return run_workers(options, 1, 0, options.json); }

int run(const config::LaunchOptions& options) {
  std::vector<std::string> command = options.program;
  if (std::filesystem::path(command[0]).extension() == ".py") command.insert(command.begin(), "python3");
  command[0] = launch::find_program(command[0]);
  if (!options.log_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.log_dir, error);
    if (error) throw IoError("--log-dir ", options.log_dir, ": ", errno_text(error.value()));
  }
  Launcher launcher({.command = std::move(command),
                     .nproc = options.nproc,
                     .threads = threads_of(options.threads, options.nproc),
                     .keep_threads = options.threads == 0,
                     .log_dir = options.log_dir,
                     .stop_by = Launcher::StopBy::kSignal});
  return launcher.run();
}

}  // namespace lockstep::front
