#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "lockstep/amp/auto_level.h"
#include "lockstep/base/cpu_features.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/topology.h"
#include "lockstep/cli/commands.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/launch/run_directory.h"
#include "lockstep/train/device.h"
#include "lockstep/train/options/train_command.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/trainer.h"
#include "lockstep/world/once.h"

namespace lockstep::cli {
namespace {

// A signal handler can reach nothing but this.
std::atomic<int> g_signals = 0;

void on_signal(int number) {
  if (g_signals.fetch_add(1) > 0) _exit(128 + number);  // the second one ends at once
}

// Our launcher keeps signals from its workers and asks through the board; elsewhere they come here.
void watch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// The run's folder, made by rank 0; without --out it is the next free runs/<recipe>-<n>. A collective.
std::string make_run_folder(World& world, const train::TrainOptions& options) {
  std::string folder = options.out;
  once(world, OnceScope::kWorld, [&] {
    if (folder.empty()) folder = launch::RunDirectory::prepare(options).path();
    std::error_code error;
    std::filesystem::create_directories(folder + "/checkpoints", error);
    if (error) throw IoError(folder, ": can't make this folder: ", error.message(), "; choose another --out");
  });
  return comm::gather_texts(world.communicator(), folder).at(0);
}

// --resume named, and the run's folder where there is no --out.
void name_resumed_run(train::TrainOptions& options) {
  const auto resumed = launch::find_resumed(options);
  if (!resumed) return;
  options.resume = resumed->from;
  if (options.out.empty()) options.out = resumed->run;
}

InitOptions world_of(const train::TrainOptions& options) {
  return {.backend = train::backend_for(options.device, options.comm.backend),
          .interfaces = options.comm.interfaces,
          .timeout = std::chrono::seconds(options.comm.timeout),
          .timeout_name = "--timeout"};
}

void tell(const train::Parts& parts, const Logger& log) {
  const train::TrainOptions& options = parts.options;
  if (!options.quiet) print(train::header_of(parts));
  const bool chosen = parts.amp_why.empty();  // by the user, not by --amp auto
  const std::string slow =
      amp::slow_warning(parts.mixed->policy(), detect_cpu_features(), amp::read_rates(amp::cache_folder()));
  if (chosen && parts.device.is_cpu() && !slow.empty()) log.warning(slow);
  if (options.precision.loss_scale > 0 && !parts.mixed->scaler().enabled()) {
    log.warning("--loss-scale ", options.precision.loss_scale, " is not used: --amp auto takes O0 here");
  }
  for (const auto& warning : parts.warnings) log.warning(warning, "; going on from ", parts.resumed_from);
}

std::string pin(const World& world) {
  const Mapping& pool = world.pool().mapping();
  return pin_rank(world.local_rank(), world.place().local_size, pool.data(), pool.size());
}

track::Progress::Options progress_options() {
  return {.terminal = env("LOCKSTEP_PROGRESS").value_or("") == "tty" ||
                      (!env("LOCKSTEP_PROGRESS") && isatty(STDOUT_FILENO) == 1),
          .columns = static_cast<int>(env_int("COLUMNS", 0, 10000).value_or(80))};
}

}  // namespace

int train(const std::string& program, const Arguments& args, const Recipes& recipes) {
  train::TrainCommand command(program, {recipes.begin(), recipes.end()});
  const auto find_config = [](const train::TrainOptions& asked) { return launch::find_resumed_config(asked); };
  if (const auto help = command.read(args, usable_cores(), find_config)) return print(*help), 0;
  watch_signals();
  train::TrainOptions& options = command.options();
  name_resumed_run(options);
  const auto world = init(world_of(options));
  options.out = make_run_folder(*world, options);
  train::Parts parts = train::set_up(options, std::dynamic_pointer_cast<train::Recipe>(command.recipe()), world);
  const bool under_launcher = env("LOCKSTEP_NODE_MEMORY").has_value();  // which names the rank in every line
  const Logger log = Logger::from_environment(under_launcher ? "" : cat("rank ", world->rank()));
  const bool leads = world->rank() == 0;
  if (leads) tell(parts, log);
  if (options.parallel.pin) log.debug("pinned to ", pin(*world));  // after set_up: --threads counts all cores
  const auto show = [quiet = options.quiet || !leads](const std::string& text) {
    if (!quiet) print(text);
  };
  const auto stop_asked = [&board = world->board()] { return g_signals > 0 || board.stop_requested.load() != 0; };
  train::Trainer trainer(std::move(parts), progress_options(), show, stop_asked, log);
  return trainer.run();
}

void print(const std::string& text) {
  if (!write_all(STDOUT_FILENO, text)) throw IoError("standard output: can't be written");
}

}  // namespace lockstep::cli
