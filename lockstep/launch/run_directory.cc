#include "lockstep/launch/run_directory.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

constexpr auto kSubfolders = std::to_array<std::string_view>({"checkpoints", "logs", "errors"});

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// The entries of a folder; none if it can't be read.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    out.push_back(each->path());
  }
  return out;
}

bool has_checkpoint(const fs::path& run) {
  for (const auto& path : entries(run / "checkpoints")) {
    if (path.extension() == ".pt") return true;
  }
  return false;
}

bool holds_run(const fs::path& run) {
  return is_there(run / "final.json") || is_there(run / "metrics.jsonl") || has_checkpoint(run);
}

// n of a folder called "<recipe>-<n>"; 0 for any other.
int number_of(const fs::path& folder, const std::string& recipe) {
  const std::string name = folder.filename().string();
  const std::string start = recipe + "-";
  if (name.rfind(start, 0) != 0) return 0;
  int number = 0;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + start.size(), end, number);
  return read.ec == std::errc() && read.ptr == end && number > 0 ? number : 0;
}

[[noreturn]] void refuse(const fs::path& path, const std::string& what, const std::error_code& error) {
  throw IoError(path.string(), ": ", what, ": ", errno_text(error.value()), "; choose another folder with --out");
}

// Creates the folder and its parents. Returns the topmost one that did not exist, "" if all existed.
std::string make_folders(const fs::path& path) {
  fs::path topmost, at;
  std::error_code error;
  for (const auto& part : path) {
    at /= part;
    const bool made = fs::create_directory(at, error);
    if (error && !is_folder(at)) {
      std::error_code ignored;
      if (!topmost.empty()) fs::remove_all(topmost, ignored);
      refuse(at, "can't make this folder", error);
    }
    if (made && topmost.empty()) topmost = at;
  }
  return topmost.string();
}

void prove_writable(const fs::path& folder) {
  const Descriptor probe(open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600));
  if (!probe && errno != EOPNOTSUPP && errno != EISDIR) {
    refuse(folder, "can't write here", std::error_code(errno, std::generic_category()));
  }
}

// Creates the folder of a new run. mkdir decides between two runs that start at the same moment.
fs::path next_free(const fs::path& root, const std::string& recipe) {
  int last = 0;
  for (const auto& path : entries(root)) last = std::max(last, number_of(path, recipe));
  for (int n = last + 1;; ++n) {
    const fs::path path = root / cat(recipe, '-', n);
    std::error_code error;
    if (fs::create_directory(path, error)) return path;
    if (error) refuse(path, "can't make this folder", error);
  }
}

fs::path newest_run(const fs::path& root, const std::string& recipe) {
  fs::path newest;
  fs::file_time_type latest{};
  for (const auto& path : entries(root)) {
    if (number_of(path, recipe) == 0 || !has_checkpoint(path)) continue;
    std::error_code error;
    const auto written = fs::last_write_time(path / "checkpoints", error);  // a checkpoint is renamed into it
    if (!error && (newest.empty() || written > latest)) {
      newest = path;
      latest = written;
    }
  }
  if (newest.empty()) {
    throw ConfigError("--resume: no run of ", recipe, " with a checkpoint under ", root.string(),
                      "; name one, or leave --resume out");
  }
  return newest;
}

// The folder of a run or the checkpoint's file that --resume stands for.
fs::path resumed(const train::TrainOptions& options, const fs::path& root) {
  if (options.resume->empty() && options.out.empty()) return newest_run(root, options.recipe);
  const fs::path from = options.resume->empty() ? options.out : *options.resume;
  if (!is_there(from)) throw ConfigError("--resume ", from.string(), ": no such file or folder");
  if (is_folder(from) && !has_checkpoint(from)) {
    throw ConfigError("--resume ", from.string(),
                      ": no checkpoint in its checkpoints/; leave --resume out to start anew");
  }
  return from;
}

// The folder of the run that a checkpoint's file belongs to; nothing if it belongs to none.
std::optional<fs::path> run_of(const fs::path& resumed_from) {
  if (is_folder(resumed_from)) return resumed_from;
  const fs::path folder = fs::absolute(resumed_from).parent_path();
  if (folder.filename() != "checkpoints") return std::nullopt;
  return resumed_from.parent_path().empty() ? folder.parent_path() : resumed_from.parent_path() / "..";
}

}  // namespace

std::optional<Resumed> find_resumed(const train::TrainOptions& options, const std::string& runs_root) {
  if (!options.resume) return std::nullopt;
  const fs::path from = resumed(options, runs_root);
  return Resumed{from.string(), run_of(from).value_or(fs::path()).string()};
}

std::string find_resumed_config(const train::TrainOptions& options, const std::string& runs_root) {
  const auto resumed = find_resumed(options, runs_root);
  if (!resumed || resumed->run.empty()) return "";
  const fs::path config = fs::path(resumed->run) / "config.toml";
  return is_there(config) ? config.string() : "";
}

RunDirectory RunDirectory::prepare(const train::TrainOptions& options, const std::string& runs_root) {
  RunDirectory run;
  std::optional<fs::path> path;
  if (!options.out.empty()) path = options.out;
  if (options.resume) {
    const fs::path from = resumed(options, runs_root);
    run.resume_ = from.string();
    if (!path) path = run_of(from);
  } else if (path && holds_run(*path)) {
    throw ConfigError("--out ", options.out, ": already holds a run; add --resume or choose another --out");
  }
  if (path) {
    run.remember(make_folders(*path));
  } else {
    run.remember(make_folders(runs_root));
    path = next_free(runs_root, options.recipe);
    run.remember(path->string());
  }
  run.path_ = path->lexically_normal().string();
  if (run.path_.size() > 1 && run.path_.back() == '/') run.path_.pop_back();
  try {
    for (const auto name : kSubfolders) run.remember(make_folders(*path / name));
    prove_writable(*path);
  } catch (const IoError&) {
    run.discard_if_unused();
    throw;
  }
  return run;
}

void RunDirectory::discard_if_unused() const {
  std::error_code ignored;
  if (holds_run(path_)) return;
  for (const auto& made : made_) fs::remove_all(made, ignored);
}

void RunDirectory::remember(const std::string& made) {
  if (!made.empty()) made_.push_back(made);
}

void check_inputs(const train::TrainOptions& options) {
  if (!options.data.path.empty() && !is_there(options.data.path)) {
    throw ConfigError("--data ", options.data.path,
                      ": no such file or folder; leave --data out to train on data made on the spot");
  }
  if (!options.load.empty() && (!is_there(options.load) || is_folder(options.load))) {
    throw ConfigError("--load ", options.load, is_folder(options.load) ? ": a folder" : ": no such file",
                      "; expected a checkpoint (.pt)");
  }
}

}  // namespace lockstep::launch
