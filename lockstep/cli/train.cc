#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <string>
#include <utility>

#include "lockstep/amp/auto_level.h"
#include "lockstep/base/cpu_features.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/run_main.h"
#include "lockstep/base/stop_request.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/topology.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/ranks.h"
#include "lockstep/cli/run_place.h"
#include "lockstep/cli/train_line.h"
#include "lockstep/config/values.h"
#include "lockstep/dash/serve.h"
#include "lockstep/launch/start.h"
#include "lockstep/train/device.h"
#include "lockstep/train/run_header.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/trainer.h"

namespace lockstep::cli {
namespace {

// A signal handler can reach nothing but these.
StopRequest g_stop;
std::atomic<bool> g_joined = false;  // until then this rank waits for others, and has nothing that it could save

void on_signal(int number) {
  const bool is_request = number != SIGUSR1;  // which only says that the time is short
  const bool once_more = g_stop.take(number) == StopRequest::Meaning::kOnceMore;
  if (once_more || (is_request && !g_joined.load())) _exit(128 + number);
}

// Our launcher keeps signals from its workers and asks through the board; elsewhere they come here. A reader of the
// output that goes away is an error of write(), not a signal.
void watch_signals() {
  signal(SIGPIPE, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    struct sigaction current {};
    sigaction(signal, nullptr, &current);
    if (current.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // nohup stays in force
  }
}

// A mistake that ends the run before it began leaves nothing behind.
train::Parts set_up(const train::TrainOptions& options, std::shared_ptr<train::Recipe> recipe,
                    std::shared_ptr<World> world, Folder& folder) {
  try {
    return train::set_up(options, std::move(recipe), std::move(world), folder.disks);
  } catch (const Error&) {
    if (folder.of_launcher) folder.of_launcher->discard_if_unused();
    throw;
  }
}

// Where the launcher serves none, which would have seen in time that it can't.
std::shared_ptr<void> dashboard_of(const train::TrainOptions& options, const Logger& log) {
  if (!options.dashboard) return nullptr;
  try {
    return dash::open_beside(options.out, *options.dashboard, options.quiet);
  } catch (const Error& error) {
    log.warning(error.what());
    return nullptr;
  }
}

[[noreturn]] void throw_unwritable() { throw IoError("standard output: can't be written"); }

// Of a further attempt at a run under our launcher, whose first one has shown the header.
std::string restart_line(const train::Parts& parts, int64_t number) {
  const std::string from = parts.resumed_from.empty()
                               ? "begins anew"
                               : cat("goes on after step ", parts.state.step, ", ", parts.resumed_from);
  return cat("restart ", number, ": ", from, '\n');
}

void tell(const train::Parts& parts, const Logger& log) {
  const train::TrainOptions& options = parts.options;
  const bool ours = parts.world->place().launcher == "lockstep";
  const int64_t restarts = ours ? env_int("TORCHELASTIC_RESTART_COUNT", 0, INT_MAX).value_or(0) : 0;
  if (!options.quiet) print(restarts > 0 ? restart_line(parts, restarts) : train::header_of(parts));
  // Else the header says so.
  if (options.quiet && !parts.dropped.empty()) log.warning("dropped ", config::joined(parts.dropped, ", "));
  if (options.quiet && options.weights.partly && !parts.loaded.empty()) log.warning("loaded ", parts.loaded);
  const bool chosen = parts.amp_why.empty();  // by the user, not by --amp auto
  const std::string slow =
      amp::slow_warning(parts.mixed->policy(), detect_cpu_features(), amp::read_rates(amp::cache_folder()));
  if (chosen && parts.device.is_cpu() && !slow.empty()) log.warning(slow);
  if (options.precision.loss_scale > 0 && !parts.mixed->scaler().enabled()) {
    log.warning("--loss-scale ", options.precision.loss_scale, " is not used: --amp auto takes O0 here");
  }
  for (const auto& warning : parts.warnings) log.warning(warning);
}

std::string pin(const World& world) {
  if (env(kNodeCores)) return "CPUs of the launcher's choice (--numa-binding)";
  const Mapping& pool = world.pool().mapping();
  return pin_rank(world.local_rank(), world.place().local_size, pool.data(), pool.size());
}

// The width of the terminal that shows this rank's output: our launcher keeps it on the board, elsewhere the terminal
// is asked.
int columns_now(const Board& board) {
  if (const int told = board.columns.load(); told > 0) return told;
  const int own = terminal_columns(STDOUT_FILENO);
  return own > 0 ? own : static_cast<int>(env_int("COLUMNS", 0, 10000).value_or(80));
}

track::Progress::Options progress_options(const World& world, bool quiet) {
  return {.terminal = env("LOCKSTEP_PROGRESS").value_or("") == "tty" ||
                      (!env("LOCKSTEP_PROGRESS") && isatty(STDOUT_FILENO) == 1),
          .columns = [&board = world.board()] { return columns_now(board); },
          .quiet = quiet};
}

}  // namespace

int train(const Program& program, const Arguments& args, const Recipes& recipes) {
  TrainLine line(program, args, recipes);
  std::optional<std::string> help;
  bool starts = false;
  const int mistake = prepare_rank([&] {
    help = line.read();
    const parallel::ParallelOptions& processes = line.options().parallel;
    starts = !help && starts_ranks(program, processes.nproc, line.command().rows().find("nproc")->given);
    if (help || starts) return;
    if (line.options().detach) {
      throw ConfigError("--detach: this rank has no launcher here that could go on in the background; leave it out");
    }
    check_inputs(line.options());
    train::let_gpus_repeat(line.options().device, line.options().deterministic);
    check_world(line.world());
  });
  if (mistake != 0) return mistake;
  if (help) return print(*help), 0;
  train::TrainCommand& command = line.command();
  const train::TrainOptions& options = command.options();
  if (starts) return launch::start_training(program.of_ranks, command, dash::open_beside);
  tell_that_steps_are_counted();
  watch_signals();
  const auto world = init(line.world());
  g_joined.store(true);
  const Logger log = Logger::from_environment(cat("rank ", world->rank()));
  open_device(options.device, train::node_ranks(*world, options.may_share_gpus()), log, options.quiet);
  const auto told_to_stop = [&] { return g_stop.asked() || world->board().stop_requested.load() != 0; };
  Folder folder = take_folder(*world, line, log, told_to_stop);  // its own until the process ends
  const bool leads = world->rank() == 0;
  if (!folder.done.empty()) {
    if (leads && !options.quiet) print(folder.done + '\n');
    return 0;
  }
  const auto dashboard = leads ? dashboard_of(options, log) : nullptr;  // forked while there is little to share
  train::Parts parts = set_up(options, std::dynamic_pointer_cast<train::Recipe>(command.recipe()), world, folder);
  parts.program = program.name;
  parts.resume_command = command.resume_command(options.out);
  if (world->place().local_size != world->size()) {
    parts.resume_command = cat("the same launch on each node, with: ", parts.resume_command);
  }
  if (leads) tell(parts, log);
  if (options.parallel.pin) log.debug("pinned to ", pin(*world));  // after set_up: --threads counts all cores
  // A closed terminal, a full disk: the run stops as on request, for it saves then.
  bool unwritable = false;
  const auto show = [&](const std::string& text) {
    if (leads && !unwritable) unwritable = !write_all(STDOUT_FILENO, text);
  };
  const auto stop_asked = [&] { return unwritable || told_to_stop(); };
  train::Trainer trainer(std::move(parts), progress_options(*world, options.quiet || !leads), show, stop_asked, log);
  const int code = trainer.run();
  if (unwritable && !g_stop.asked()) throw_unwritable();
  if (code == 0 && folder.of_launcher) folder.of_launcher->mark_ended();
  return code;
}

void print(const std::string& text) {
  if (!write_all(STDOUT_FILENO, text)) throw_unwritable();
}

}  // namespace lockstep::cli
