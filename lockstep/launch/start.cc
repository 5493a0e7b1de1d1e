#include "lockstep/launch/start.h"

#include <unistd.h>

#include <array>
#include <ctime>
#include <functional>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/log.h"
#include "lockstep/base/path_kind.h"
#include "lockstep/launch/detach.h"
#include "lockstep/launch/launcher.h"
#include "lockstep/launch/run_directory.h"
#include "lockstep/parallel/options/lanes.h"
#include "lockstep/train/folder/folder_watch.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/folder/run_folder.h"

namespace lockstep::launch {
namespace {

std::vector<std::string> command_line(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

// The job's launcher would take the foreground's end for the run's.
void refuse_of_job(const Start& start) {
  if (start.jobs.empty()) return;
  throw ConfigError("--detach: this is a process of ", start.jobs.front().name,
                    ", which would end the run with this command; leave --detach out");
}

// The first line tells, in a log to which later starts add, where each of them begins.
void enter_background(Background& background, const RunDirectory& run) {
  std::array<char, 32> now{};
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  std::strftime(now.data(), now.size(), "%F %T", localtime_r(&seconds, &local));
  background.write_to(train::RunFiles{run.path()}.launcher_log(),
                      cat("in the background since ", now.data(), ", pid ", getpid(), " on ", host_name(), '\n'));
}

// With --quiet the foreground prints the folder alone, for scripts.
std::function<void()> told_of_begin(Background* background, const std::string& folder, bool quiet) {
  if (background == nullptr) return {};
  return [=] { background->begun(quiet ? folder + '\n' : background_text(folder, getpid())); };
}

// Nothing where the ranks write by themselves. `folder` outlives them.
std::optional<checkpoint::Keeper::Options> saves_of(const train::TrainOptions& options, const RunDirectory& run,
                                                    const train::FolderWatch& folder) {
  if (!options.background_saves) return std::nullopt;
  checkpoint::Keeper::Options saves{.folder = train::RunFiles{run.path()}.checkpoints(), .keep_last = options.keep};
  saves.check_folder = [&folder] { folder.check(); };
  return saves;
}

int train_in_folder(const std::string& rank_program, train::TrainCommand& command, const Start& start,
                    Background* background, const OpenDashboard& open_dashboard) {
  train::TrainOptions& options = command.options();
  train::check_gpus(options.device, options.parallel.nproc, options.may_share_gpus());  // a driver may start threads
  auto run = RunDirectory::prepare(options, start);
  go_on(options, run.path(), run.resume());
  if (background != nullptr) enter_background(*background, run);
  run.warn(Logger::from_environment(""));
  std::shared_ptr<void> dashboard;
  try {
    const auto port = std::exchange(options.dashboard, std::nullopt);  // which is none of the ranks' business
    if (port) dashboard = open_dashboard(run.path(), *port, options.quiet);
  } catch (const Error&) {
    run.discard_if_unused();
    throw;
  }
  const parallel::ParallelOptions& processes = options.parallel;
  const train::FolderWatch folder(run.path());
  const std::string load = options.weights.load;  // as it was given
  Launcher launcher(
      {.command = command_line(rank_program, command.arguments()),
       .command_again =
           [&](bool trained) {
             // What --resume named may have become a numbered checkpoint by now.
             const bool gone = options.resume && !is_there(*options.resume);
             if ((trained || gone) && train::holds_checkpoint(run.path())) go_on(options, run.path(), run.path());
             if (!options.weights.load.empty()) options.weights.load = same_load(load, run.path(), start.say);
             return command_line(rank_program, command.arguments());
           },
       .saved = run.resume() ? cat("checkpoint ", *run.resume()) : "",
       .max_restarts = options.max_restarts,
       .fewer = [&](int ranks) { return options.parallel.fewer_than(ranks); },
       .nproc = processes.nproc,
       .threads = parallel::threads_or_default(processes.threads, usable_cores(), processes.lanes_of(processes.nproc)),
       .log_dir = run.logs(),
       .error_dir = run.errors(),
       .resume_command = command.resume_command(run.path()),
       .on_first_step = told_of_begin(background, run.path(), options.quiet),
       .run_lock = run.lock().descriptor(),
       .saves = saves_of(options, run, folder),
       .timeout_ns = static_cast<int64_t>(options.comm.timeout) * 1'000'000'000,
       .grace_ns = static_cast<int64_t>(options.grace * 1e9),
       .own_workers = true});
  const int code = launcher.run();
  if (launcher.ended_by_plain_mistake()) run.discard_if_unused();
  if (code == 0) run.mark_ended();
  return code;
}

}  // namespace

int start_training(const std::string& rank_program, train::TrainCommand& command, const OpenDashboard& open_dashboard) {
  train::TrainOptions& options = command.options();
  Start start = find_start(options);
  start.say = [](const std::string& line) { Logger::from_environment("").warning(line); };
  if (const std::string done = find_done(start); !done.empty()) {
    if (!options.quiet && !write_all(STDOUT_FILENO, done + '\n')) throw IoError("standard output: can't be written");
    return 0;
  }
  check_inputs(options);
  if (!options.detach) return train_in_folder(rank_program, command, start, nullptr, open_dashboard);
  refuse_of_job(start);
  return in_background([&](Background& background) {
    options.detach = false;
    return train_in_folder(rank_program, command, start, &background, open_dashboard);
  });
}

int start_evaluation(const std::string& rank_program, const train::EvalCommand& command) {
  const train::EvalOptions& options = command.options();
  train::check_gpus(options.device, options.processes.nproc, /*may_share=*/false);
  return start_ranks(rank_program, command.arguments(), options.processes, options.json);
}

int start_ranks(const std::string& rank_program, const std::vector<std::string>& arguments,
                const parallel::ProcessOptions& processes, bool json, int answer, int in_fd) {
  Launcher launcher({.command = command_line(rank_program, arguments),
                     .nproc = processes.nproc,
                     .threads = parallel::threads_or_default(processes.threads, usable_cores(), processes.nproc),
                     .only_rank0_on_stdout = json,
                     .answer = answer,
                     .stop_by = Launcher::StopBy::kSignal,
                     .own_workers = true,
                     .in_fd = in_fd});
  return launcher.run();
}

}  // namespace lockstep::launch
