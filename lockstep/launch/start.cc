#include "lockstep/launch/start.h"

#include <unistd.h>

#include <filesystem>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
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

}  // namespace

int start_training(const std::string& rank_program, train::TrainCommand& command) {
  train::TrainOptions& options = command.options();
  const Start start = find_start(options);
  if (const std::string done = find_done(start); !done.empty()) {
    if (!options.quiet && !write_all(STDOUT_FILENO, done + '\n')) throw IoError("standard output: can't be written");
    return 0;
  }
  check_inputs(options);
  train::check_gpus(options.device, options.parallel.nproc, options.may_share_gpus());
  auto run = RunDirectory::prepare(options, start);
  go_on(options, run.path(), run.resume());
  run.warn(Logger::from_environment(""));
  const parallel::ParallelOptions& processes = options.parallel;
  const train::FolderWatch folder(run.path());
  Launcher launcher(
      {.command = command_line(rank_program, command.arguments()),
       .command_again =
           [&](bool trained) {
             // What --resume named may have become a numbered checkpoint by now.
             const bool gone = options.resume && !std::filesystem::exists(*options.resume);
             if ((trained || gone) && train::holds_checkpoint(run.path())) go_on(options, run.path(), run.path());
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
       .run_lock = run.lock().descriptor(),
       .saves = {.folder = options.background_saves ? train::RunFiles{run.path()}.checkpoints() : "",
                 .keep_last = options.keep,
                 .check_folder = [&folder] { folder.check(); }},
       .timeout_ns = static_cast<int64_t>(options.comm.timeout) * 1'000'000'000,
       .grace_ns = static_cast<int64_t>(options.grace * 1e9),
       .own_workers = true});
  const int code = launcher.run();
  if (launcher.ended_by_plain_mistake()) run.discard_if_unused();
  if (code == 0) run.mark_ended();
  return code;
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
