// ps, logs, dash and stop.
#include "lockstep/apps/commands/run_commands.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <fstream>
#include <utility>

#include "commands.h"
#include "lockstep/base/error.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/log.h"
#include "lockstep/config/values.h"
#include "lockstep/dash/page.h"
#include "lockstep/dash/serve.h"
#include "lockstep/launch/runs/file_end.h"
#include "lockstep/launch/runs/find_runs.h"
#include "lockstep/launch/runs/follow.h"
#include "lockstep/launch/runs/run_table.h"
#include "lockstep/launch/runs/stop_run.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/train/folder/run_lock.h"

namespace lockstep::front {
namespace {

constexpr const char* kRuns = "runs";

void tell(const std::string& line) { write_all(STDERR_FILENO, line + '\n'); }

}  // namespace

int ps(const Arguments& args) {
  apps::Command<apps::PsOptions> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const apps::PsOptions& options = command.options();
  std::vector<launch::RunFacts> runs;
  for (const std::string& folder : launch::find_runs(options.folders, kRuns)) {
    if (!options.all && !train::owner_of(folder).held) continue;
    launch::RunFacts run = launch::facts_of_run(folder);
    if (options.all || run.state == launch::RunState::kUnderWay) runs.push_back(std::move(run));
  }
  const std::time_t now = std::time(nullptr);
  const std::string where = options.folders.empty() ? cat(kRuns, '/') : config::joined(options.folders, ", ");
  const std::string nothing = options.all
                                  ? cat("no run in ", where)
                                  : cat("no run is under way in ", where, "; ps --all lists those that have ended");
  print(options.json ? launch::runs_json(runs, now) : launch::run_table(runs, options.all, host_name(), now, nothing));
  return 0;
}

// A reader that has seen enough, as head, ends it.
int logs(const Arguments& args) {
  apps::Command<apps::LogsOptions> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const apps::LogsOptions& options = command.options();
  const std::string run = launch::find_run(options.run, kRuns);
  signal(SIGPIPE, SIG_IGN);
  bool lost = false;
  const auto show = [&lost](const std::string& text) {
    if (write_all(STDOUT_FILENO, text)) return true;
    lost = errno != EPIPE;
    return false;
  };
  launch::show_log(run, launch::log_of(run, options.rank),
                   {.follow = options.follow, .lines = options.lines, .out_fd = STDOUT_FILENO}, show, tell);
  if (lost) throw IoError("standard output: can't be written");
  return 0;
}

int dash(const Arguments& args) {
  apps::Command<apps::DashOptions> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const apps::DashOptions& options = command.options();
  const std::string folder = launch::find_run(options.run, kRuns);
  if (!options.out.empty()) {
    const std::string page = dash::RunPage(folder).page(/*live=*/false);  // before anything there is cut off
    std::ofstream file(options.out, std::ios::trunc);
    file << page << std::flush;
    if (!file) throw IoError("--out ", options.out, ": can't be written: ", errno_text(errno));
    return 0;
  }
  dash::serve(folder, {.host = options.host, .port = options.port.value_or(0)},
              [&](const std::string& url) { print(cat("dashboard of ", folder, ": ", url, "  (Ctrl-C ends it)\n")); });
  return 0;
}

int stop(const Arguments& args) {
  apps::Command<apps::StopOptions> command;
  if (const auto help = command.read(args)) return print(*help), 0;
  const apps::StopOptions& options = command.options();
  const std::string folder = launch::find_run(options.run, kRuns);
  const std::chrono::milliseconds timeout(static_cast<int64_t>(options.timeout * 1e3));
  const launch::RunFacts run = launch::stop_run(folder, {.now = options.now, .timeout = timeout}, tell);
  constexpr size_t kLastBytes = 16UL * 1024;
  const std::string next = launch::resume_command_in(launch::end_of(train::RunFiles{folder}.rank_log(0), kLastBytes));
  print(launch::stopped_text(run, train::newest_checkpoint(folder).value_or(""), next));
  return 0;
}

}  // namespace lockstep::front
