#include "lockstep/launch/resumed.h"

#include <algorithm>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/folder_entries.h"
#include "lockstep/base/path_kind.h"
#include "lockstep/config/inputs.h"
#include "lockstep/config/toml_file.h"
#include "lockstep/launch/runs_root.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/train/folder/run_lock.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_folder(const std::string& folder) {
  if (const train::LockOwner owner = train::owner_of(folder); owner.held) {
    throw ConfigError("--resume ", folder, ": a run is under way there",
                      owner.pid > 0 ? cat(" (pid ", owner.pid, " on ", owner.host, ')') : "",
                      ", and has saved no checkpoint yet; wait for its end or stop it");
  }
  if (train::holds_run(folder) || is_there(train::RunFiles{folder}.config())) {
    throw ConfigError("--resume ", folder, ": the run has saved no checkpoint yet; begin it anew with --out ", folder,
                      " --overwrite");
  }
  throw ConfigError("--resume ", folder, ": no run's folder, for it has no checkpoints/ with a checkpoint in it");
}

auto find_own(const std::vector<train::JobCommand>& commands, const std::vector<LaunchedJob>& jobs) {
  return std::find_if(commands.begin(), commands.end(),
                      [&jobs](const train::JobCommand& each) { return is_restart(each.job, jobs); });
}

// The command of a line of another length, where it is the one that has run in the folder.
std::optional<train::JobCommand> find_of_other_length(const std::vector<train::JobCommand>& commands,
                                                      const std::vector<LaunchedJob>& jobs) {
  const bool computed_anew = commands.size() == 1 && is_restart_of_other_length(commands.front().job, jobs);
  return computed_anew ? std::optional(commands.front()) : std::nullopt;
}

bool was_begun_by(const std::vector<LaunchedJob>& jobs, const std::string& folder) {
  return find_earlier_command(train::RunLock::commands_of(folder), jobs).has_value();
}

// Adds the agents that have begun or gone on with the run of a folder.
void add_agents_of(std::vector<LaunchedJob>& jobs, const std::string& folder) {
  std::vector<std::string> named;
  for (const train::JobCommand& each : train::RunLock::commands_of(folder)) named.push_back(each.job);
  add_others(jobs, named);
}

// Whatever their recipes: one command line has one. A folder of a line of another length counts only where it is the
// one such folder, for of several nobody can tell whose they are.
std::string newest_begun_by(const std::vector<LaunchedJob>& jobs, const std::string& root) {
  fs::path own, of_other_length;
  int others = 0;
  for (const auto& path : entries_of(root)) {
    if (number_of(path) == 0) continue;
    const auto commands = train::RunLock::commands_of(path);
    if (find_own(commands, jobs) != commands.end()) {
      if (number_of(path) > number_of(own)) own = path;
    } else if (find_of_other_length(commands, jobs)) {
      of_other_length = path;
      ++others;
    }
  }
  return own.empty() && others == 1 ? of_other_length.string() : own.string();
}

std::string find_earlier_start(const train::TrainOptions& options, const std::string& runs_root,
                               const std::vector<LaunchedJob>& jobs) {
  const bool may_be_restart =
      std::any_of(jobs.begin(), jobs.end(), [](const LaunchedJob& job) { return job.restarted() || job.one_command; });
  if (!may_be_restart) return "";  // without a look into all runs' folders
  if (!options.out.empty()) return was_begun_by(jobs, options.out) ? options.out : "";
  if (const std::string from = options.resume.value_or(""); !from.empty()) {
    const std::string run = is_folder(from) ? from : train::run_of(from);
    if (!run.empty() && was_begun_by(jobs, run)) return run;
  }
  return newest_begun_by(jobs, runs_root);
}

}  // namespace

std::optional<train::JobCommand> find_earlier_command(const std::vector<train::JobCommand>& commands,
                                                      const std::vector<LaunchedJob>& jobs) {
  const auto own = find_own(commands, jobs);
  return own != commands.end() ? std::optional(*own) : find_of_other_length(commands, jobs);
}

Start find_start(const train::TrainOptions& options, const std::string& runs_root,
                 const std::vector<LaunchedJob>& jobs) {
  return {.jobs = jobs, .runs_root = runs_root, .earlier = find_earlier_start(options, runs_root, jobs)};
}

std::string find_done(const Start& start) {
  const std::string& folder = start.earlier;
  if (folder.empty()) return "";
  const auto commands = train::RunLock::commands_of(folder);
  const auto own = find_own(commands, start.jobs);
  if (own == commands.begin() || own == commands.end()) return "";
  const std::string& later = commands.front().line;
  if (own->ended) {
    return cat("nothing left to do: '", own->line, "' has ended, and '", later, "', of the same job, has gone on in ",
               folder);
  }
  throw ConfigError(folder, ": '", own->line, "' had not ended when '", later,
                    "', of the same job, went on there, so it can't go on now; leave it out, or give it another --out");
}

std::optional<Resumed> find_resumed(const train::TrainOptions& options, const Start& start) {
  const std::string& earlier = start.earlier;
  if (!earlier.empty() && train::holds_checkpoint(earlier)) return Resumed{earlier, earlier};
  if (!options.resume) return std::nullopt;
  std::string from = options.resume->empty() ? options.out : *options.resume;
  if (from.empty()) from = newest_run(start.runs_root, options.recipe);
  config::require_there("--resume", from);
  if (!is_folder(from)) return Resumed{from, train::run_of(from), train::is_newest(from)};
  if (!train::holds_checkpoint(from)) refuse_folder(from);
  return Resumed{from, from};
}

std::string find_resumed_config(const train::TrainOptions& options, const Start& start) {
  const auto resumed = find_resumed(options, start);
  if (!resumed || resumed->run.empty()) return "";
  const std::string config = train::RunFiles{resumed->run}.config();
  return is_there(config) ? config : "";
}

std::string guess_resumed_config(const train::TrainOptions& options, const std::string& runs_root,
                                 const std::vector<LaunchedJob>& jobs) {
  try {
    return find_resumed_config(options, find_start(options, runs_root, jobs));
  } catch (const ConfigError&) {
    std::vector<LaunchedJob> perhaps = jobs;
    std::erase_if(perhaps, [](const LaunchedJob& job) { return !job.one_command; });
    for (LaunchedJob& job : perhaps) job.start = 0;  // so that the command line counts
    add_agents_of(perhaps, options.out);
    add_agents_of(perhaps, train::run_of(options.resume.value_or("")));
    for (const auto& path : entries_of(runs_root)) add_agents_of(perhaps, path);
    const std::string found =
        perhaps.empty() ? "" : find_resumed_config(options, find_start(options, runs_root, perhaps));
    if (found.empty()) throw;
    return found;
  }
}

std::string same_load(const std::string& load, const std::string& folder,
                      const std::function<void(const std::string&)>& warn) {
  const std::string config = train::RunFiles{folder}.config();
  if (load.empty() || !is_folder(load) || !is_there(config)) return load;
  std::string first;
  try {
    for (const config::GivenOption& option : config::read_any_toml(config)) {
      if (option.name == "load") first = option.value;
    }
  } catch (const ConfigError&) {  // the attempt has ended while it wrote the file: nothing was loaded yet
    return load;
  }
  if (!train::same_place(train::run_of(first), load)) return load;
  if (is_there(first)) return first;
  warn(cat("--load ", load, ": ", first, ", with which the run began, is gone; it begins anew with the newest there"));
  return load;
}

}  // namespace lockstep::launch
