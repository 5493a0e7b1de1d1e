#include <signal.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "lockstep/amp/auto_level.h"
#include "lockstep/base/cpu_features.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/stop_request.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/topology.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/ranks.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/config/values.h"
#include "lockstep/launch/resumed.h"
#include "lockstep/launch/run_directory.h"
#include "lockstep/launch/start.h"
#include "lockstep/train/device.h"
#include "lockstep/train/folder/run_lock.h"
#include "lockstep/train/options/train_command.h"
#include "lockstep/train/run_header.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/trainer.h"
#include "lockstep/world/once.h"

namespace lockstep::cli {
namespace {

// A signal handler can reach nothing but this.
StopRequest g_stop;

void on_signal(int number) {
  if (g_stop.take(number) == StopRequest::Meaning::kOnceMore) _exit(128 + number);
}

// Our launcher keeps signals from its workers and asks through the board; elsewhere they come here. A reader of the
// output that goes away is an error of write(), not a signal.
void watch_signals() {
  signal(SIGPIPE, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction current {};
    sigaction(signal, nullptr, &current);
    if (current.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // nohup stays in force
  }
}

// The ownership of the run's folder.
struct Folder {
  std::optional<train::RunLock> of_front;           // lockstep's front has prepared it
  std::optional<launch::RunDirectory> of_launcher;  // rank 0 has, where another launcher started the ranks
};

// Prepares the run's folder on rank 0, unless the front has done so, and completes --out and --resume on all ranks. A
// collective.
Folder take_folder(World& world, train::TrainOptions& options, const Logger& log) {
  Folder folder{.of_front = train::RunLock::inherited(options.out), .of_launcher = {}};
  if (folder.of_front) return folder;
  once(world, OnceScope::kWorld, [&] {
    folder.of_launcher = launch::RunDirectory::prepare(options);
    launch::go_on(options, *folder.of_launcher);
  });
  const std::string& warning = folder.of_launcher ? folder.of_launcher->lock().warning() : "";
  if (!warning.empty()) log.warning(warning);
  options.out = comm::gather_texts(world.communicator(), options.out).at(0);
  const std::string resume = comm::gather_texts(world.communicator(), options.resume.value_or("")).at(0);
  if (resume.empty()) return folder;
  options.resume = resume;
  if (!options.load.empty()) options.loaded = std::exchange(options.load, "");
  return folder;
}

// A mistake that ends the run before it began leaves nothing behind.
train::Parts set_up(const train::TrainOptions& options, std::shared_ptr<train::Recipe> recipe,
                    std::shared_ptr<World> world, const Folder& folder) {
  try {
    return train::set_up(options, std::move(recipe), std::move(world));
  } catch (const Error&) {
    if (folder.of_launcher) folder.of_launcher->discard_if_unused();
    throw;
  }
}

[[noreturn]] void throw_unwritable() { throw IoError("standard output: can't be written"); }

InitOptions world_of(const train::TrainOptions& options) {
  return {.backend = train::backend_for(options.device, options.comm.backend),
          .interfaces = options.comm.interfaces,
          .timeout = std::chrono::seconds(options.comm.timeout),
          .timeout_name = "--timeout"};
}

void tell(const train::Parts& parts, const Logger& log) {
  const train::TrainOptions& options = parts.options;
  if (!options.quiet) print(train::header_of(parts));
  // Else the header says so.
  if (options.quiet && !parts.dropped.empty()) log.warning("dropped ", config::joined(parts.dropped, ", "));
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
  train::TrainCommand command(program.name, {recipes.begin(), recipes.end()});
  const auto find_config = [](const train::TrainOptions& asked) { return launch::find_resumed_config(asked); };
  const parallel::Machine machine{.cores = usable_cores(), .launched = is_launched() || program.of_ranks.empty()};
  if (const auto help = command.read(args, machine, find_config)) return print(*help), 0;
  train::TrainOptions& options = command.options();
  if (starts_ranks(program, options.parallel.nproc, command.rows().find("nproc")->given))
    return launch::start_training(program.of_ranks, command);
  watch_signals();
  launch::check_inputs(options);
  train::require_gpu(options.device);
  const auto world = init(world_of(options));
  const bool under_launcher = env("LOCKSTEP_NODE_MEMORY").has_value();  // which names the rank in every line
  const Logger log = Logger::from_environment(under_launcher ? "" : cat("rank ", world->rank()));
  const Folder folder = take_folder(*world, options, log);  // its own until the process ends
  train::Parts parts = set_up(options, std::dynamic_pointer_cast<train::Recipe>(command.recipe()), world, folder);
  parts.program = program.name;
  parts.resume_command = command.resume_command(options.out);
  const bool leads = world->rank() == 0;
  if (leads) tell(parts, log);
  if (options.parallel.pin) log.debug("pinned to ", pin(*world));  // after set_up: --threads counts all cores
  // A closed terminal, a full disk: the run stops as on request, for it saves then.
  bool unwritable = false;
  const auto show = [&](const std::string& text) {
    if (leads && !unwritable) unwritable = !write_all(STDOUT_FILENO, text);
  };
  const auto stop_asked = [&] { return g_stop.asked() || unwritable || world->board().stop_requested.load() != 0; };
  train::Trainer trainer(std::move(parts), progress_options(*world, options.quiet || !leads), show, stop_asked, log);
  const int code = trainer.run();
  if (unwritable && !g_stop.asked()) throw_unwritable();
  return code;
}

void print(const std::string& text) {
  if (!write_all(STDOUT_FILENO, text)) throw_unwritable();
}

}  // namespace lockstep::cli
