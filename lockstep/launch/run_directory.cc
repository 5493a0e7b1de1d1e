#include "lockstep/launch/run_directory.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/folder_entries.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/log.h"
#include "lockstep/base/path_kind.h"
#include "lockstep/config/inputs.h"
#include "lockstep/launch/runs_root.h"
#include "lockstep/launch/unique_id.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/train/folder/text_file.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& what, const std::error_code& error) {
  throw IoError(path.string(), ": ", what, ": ", errno_text(error.value()), "; choose another folder with --out");
}

void prove_writable(const fs::path& folder) {
  const Descriptor probe(open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600));
  if (!probe && errno != EOPNOTSUPP && errno != EISDIR) {
    refuse(folder, "can't write here", std::error_code(errno, std::generic_category()));
  }
}

// Where a run goes.
struct Place {
  std::string folder;  // empty: the next free one
  std::string option;  // what named it: "--out runs/a"
  bool begins = true;  // a run begins there, so it must hold none yet
};

Place place_of(const train::TrainOptions& options, const std::optional<Resumed>& resumed) {
  const bool is_own =
      resumed && !resumed->run.empty() &&
      (options.out.empty() || options.out == resumed->run || train::same_place(options.out, resumed->run));
  if (!is_own) return {.folder = options.out, .option = cat("--out ", options.out)};
  if (resumed->newest || options.overwrite) {
    return {.folder = resumed->run, .option = cat("--resume ", resumed->from), .begins = false};
  }
  if (options.out.empty()) return {};
  throw ConfigError("--resume ", resumed->from, ": ", options.out,
                    " has later checkpoints; add --overwrite to drop them, or leave --out out for a folder of its own");
}

// The run in a folder may be that of another command of the same job.
std::string other_command(const std::vector<train::JobCommand>& commands, const std::vector<LaunchedJob>& jobs) {
  if (commands.empty() || !is_of_job(commands.front().job, jobs) || is_of_command(commands.front().job, jobs))
    return "";
  return cat(", that of another command of this job ('", commands.front().line, "', and not '", jobs.front().line,
             "')");
}

void check_unused(const std::string& folder, const std::string& option, bool overwrite, const std::string& whose) {
  if (!train::holds_run(folder)) return;
  if (train::holds_checkpoint(folder)) {
    throw ConfigError(option, ": already holds a run", whose, "; go on with it by --resume ", folder,
                      ", or choose another --out");
  }
  if (overwrite) return;
  throw ConfigError(option,
                    ": holds a run that saved no checkpoint; add --overwrite to begin anew there, or choose "
                    "another --out");
}

// Those of a folder that this process's command goes on in. Another job's are no longer of use, nor is the line in
// whose place this one comes.
std::vector<train::JobCommand> with_own(const std::vector<train::JobCommand>& earlier,
                                        const std::vector<LaunchedJob>& jobs) {
  if (jobs.empty()) return {};
  const auto same = find_earlier_command(earlier, jobs);
  std::vector<train::JobCommand> all = {{.job = names_of(jobs), .line = jobs.front().line}};
  for (const train::JobCommand& each : earlier) {
    if (is_of_job(each.job, jobs) && !is_of_command(each.job, jobs) && each != same) all.push_back(each);
  }
  return all;
}

// The command whose run goes on, where its line is not this one's.
std::string other_line(const std::vector<train::JobCommand>& earlier, const std::vector<LaunchedJob>& jobs) {
  const auto same = find_earlier_command(earlier, jobs);
  if (!same || is_of_command(same->job, jobs)) return "";
  return cat("goes on with the run that an earlier start of this job has begun by '", same->line, "', now by '",
             jobs.front().line, "'");
}

// Whether an earlier start of this process's command is the one that has the folder's run.
bool is_newest_command_of(const std::vector<LaunchedJob>& jobs, const std::vector<train::JobCommand>& commands) {
  const auto same = find_earlier_command(commands, jobs);
  return same && *same == commands.front();
}

}  // namespace

RunDirectory RunDirectory::prepare(const train::TrainOptions& options, const Start& start) {
  RunDirectory run;
  const std::vector<LaunchedJob>& jobs = start.jobs;
  if (const std::string done = find_done(start); !done.empty()) throw BugError(done);
  const auto resumed = find_resumed(options, start);
  Place place = place_of(options, resumed);
  if (place.folder.empty()) {
    place.folder = start.earlier;  // which saved no checkpoint
    place.option = cat("--out ", place.folder);
  }
  if (resumed) run.resume_ = resumed->from;
  try {
    if (place.folder.empty()) {
      run.make_next_free(start.runs_root, options.recipe);
    } else {
      run.path_ = without_last_slash(fs::path(place.folder).lexically_normal().string());
      run.make_folders(place.folder);
    }
    run.take_lock(start, place.folder.empty() ? cat("--out ", run.path_) : place.option);
    run.earlier_ = run.lock_->commands();
    const bool restarted = place.begins && is_newest_command_of(jobs, run.earlier_);
    if (restarted && train::holds_checkpoint(run.path_)) run.resume_ = run.path_;
    if (place.begins && !restarted) {
      check_unused(run.path_, place.option, options.overwrite, other_command(run.earlier_, jobs));
    }
    // The run may have gone on until its lock was free.
    if (!place.begins && resumed->newest && resumed->from != resumed->run && !train::is_newest(resumed->from)) {
      throw ConfigError("--resume ", resumed->from, ": the run has gone on meanwhile; try again");
    }
    run.make_own_folders();
    if (const std::string line = other_line(run.earlier_, jobs); !line.empty()) run.note_ = cat(run.path_, ": ", line);
    run.lock_->set_commands(with_own(run.earlier_, jobs));
  } catch (const Error&) {
    run.discard_if_unused();
    throw;
  }
  return run;
}

std::optional<RunDirectory> RunDirectory::prepare_other(const OtherFolder& other, const Start& start) {
  const std::string& path = other.path;
  if (is_there(path + "/" + other.mark)) return std::nullopt;
  RunDirectory run;
  run.path_ = path;
  const std::string option = cat("--out ", path);
  try {
    run.make_folders(path);
    run.take_lock(start, option);
    run.earlier_ = run.lock_->commands();
    const train::RunFiles files{path};
    const bool same_run = train::read_text(files.run_id()) == other.id;
    if (train::holds_run(path) && !same_run) {
      throw ConfigError(option, ": on the disk of ", host_name(),
                        " it holds another run; move that away, or choose another --out");
    }
    if (train::holds_checkpoint(path) && !other.goes_on) {
      throw ConfigError(option, ": the disk of ", host_name(),
                        " has checkpoints of this run, and it begins anew here; ", "go on with them by --resume ", path,
                        ", or choose another --out");
    }
    run.make_own_folders();
    train::write_text(files.run_id(), other.id);
    run.lock_->set_commands(with_own(run.earlier_, start.jobs));
  } catch (const Error&) {
    run.discard_if_unused();
    throw;
  }
  return run;
}

std::string RunDirectory::id() const {
  const std::string file = train::RunFiles{path_}.run_id();
  std::string id = train::read_text(file);
  if (id.empty()) train::write_text(file, id = unique_id());
  return id;
}

// Creates the folder and its parents.
void RunDirectory::make_folders(const std::string& path) {
  config::require_folder_place("--out", path, "; choose another --out");
  fs::path at;
  for (const auto& part : fs::path(path)) {
    at /= part;
    std::error_code error;
    if (fs::create_directory(at, error)) made_.push_back(at.string());
    if (!is_folder(at)) refuse(at, "can't make this folder", error);
  }
}

void RunDirectory::make_own_folders() {
  const train::RunFiles files{path_};
  for (const auto& folder : {files.checkpoints(), files.logs(), files.errors()}) make_folders(folder);
  prove_writable(path_);
}

// Creates the folder of a new run. mkdir decides between two runs that start at the same moment.
void RunDirectory::make_next_free(const std::string& root, const std::string& recipe) {
  make_folders(root);
  int last = 0;
  for (const auto& path : entries_of(root)) last = std::max(last, number_of(path, recipe));
  for (int n = last + 1;; ++n) {
    path_ = (fs::path(root) / cat(recipe, '-', n)).lexically_normal().string();
    std::error_code error;
    if (fs::create_directory(path_, error)) break;
    if (error) refuse(path_, "can't make this folder", error);
  }
  made_.push_back(path_);
}

// Where a node is lost, its ranks may hold the lock yet: they end when they miss the others.
void RunDirectory::take_lock(const Start& start, const std::string& option) {
  std::error_code error;
  made_lock_ = !fs::exists(train::RunFiles{path_}.lock(), error);
  train::RunLock::Means means{.say = start.say, .stop_asked = start.stop_asked};
  if (is_newest_command_of(start.jobs, train::RunLock::commands_of(path_))) {
    means.patience_with_owner = std::chrono::minutes(3);
  }
  lock_ = train::RunLock::take(path_, option, means);
  watch_.emplace(path_);
}

bool RunDirectory::has_made(const std::string& folder) const {
  return std::any_of(made_.begin(), made_.end(),
                     [&folder](const auto& made) { return train::same_place(made, folder); });
}

void RunDirectory::discard_if_unused() {
  std::error_code ignored;
  if (watch_) {
    if (!watch_->holds()) return;
    if (!train::holds_run(path_)) remove_files();
    if (made_lock_) fs::remove(train::RunFiles{path_}.lock(), ignored);
    if (!made_lock_) lock_->set_commands(earlier_);
  }
  for (auto made = made_.rbegin(); made != made_.rend(); ++made) fs::remove(*made, ignored);
}

// The files that a run writes before it begins, in folders that are its own.
void RunDirectory::remove_files() const {
  const train::RunFiles files{path_};
  std::error_code ignored;
  for (const auto& folder : {files.logs(), files.errors()}) {
    if (!has_made(folder)) continue;
    for (const auto& file : entries_of(folder)) fs::remove(file, ignored);
  }
  if (!has_made(path_)) return;
  for (const auto& file : {files.config(), files.data_list(), files.data_scan(), files.run_id()})
    fs::remove(file, ignored);
}

void RunDirectory::warn(const Logger& log) const {
  for (const std::string& text : {lock_->warning(), note_}) {
    if (!text.empty()) log.warning(text);
  }
}

void go_on(train::TrainOptions& options, const std::string& folder, const std::optional<std::string>& resume) {
  options.out = folder;
  options.resume = resume;
  if (!options.resume || options.weights.load.empty()) return;
  options.loaded = std::exchange(options.weights, {});
}

void check_inputs(const train::TrainOptions& options) {
  if (!options.data.path.empty()) {
    config::require_there("--data", options.data.path, "; leave --data out to train on data made on the spot");
  }
  if (!options.weights.load.empty()) {
    config::require_there("--load", options.weights.load, "; expected a checkpoint (.pt, .safetensors) or a run");
  }
}

}  // namespace lockstep::launch
