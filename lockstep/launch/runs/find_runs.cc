#include "lockstep/launch/runs/find_runs.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "lockstep/base/error.h"
#include "lockstep/base/folder_entries.h"
#include "lockstep/base/path_kind.h"
#include "lockstep/base/text.h"
#include "lockstep/config/inputs.h"
#include "lockstep/launch/runs_root.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/folder/run_folder.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> runs_in(const std::string& root) {
  std::vector<std::string> runs;
  for (const fs::path& entry : entries_of(root)) {
    if (is_run(entry.string())) runs.push_back(entry.lexically_normal().string());
  }
  return runs;
}

// "; did you mean runs/mnist-1?"
std::string near_run(const std::string& word, const std::string& root) {
  std::vector<std::string> names;
  for (const std::string& run : runs_in(root)) names.push_back(fs::path(run).filename().string());
  std::sort(names.begin(), names.end());
  const std::string near = nearest(fs::path(word).filename().string(), names);
  return near.empty() ? "; lockstep ps --all lists the runs"
                      : cat("; did you mean ", (fs::path(root) / near).string(), '?');
}

// mnist-2 comes before mnist-10.
bool comes_before(const std::string& a, const std::string& b) {
  const auto key = [](const std::string& run) {
    const int number = number_of(run);
    return std::tuple(number == 0 ? run : run.substr(0, run.rfind('-')), number, run);
  };
  return key(a) < key(b);
}

}  // namespace

bool is_run(const std::string& folder) {
  const train::RunFiles files{folder};
  std::error_code error;
  return fs::exists(files.lock(), error) || fs::exists(files.config(), error) || train::holds_run(folder);
}

std::string find_run(const std::string& word, const std::string& root) {
  std::string run = without_last_slash(word);
  if (is_folder(run) && is_run(run)) return run;
  const fs::path named = fs::path(root) / run;
  if (fs::path(run).is_relative() && is_folder(named) && is_run(named.string())) return named.string();
  if (is_folder(run)) throw ConfigError(run, ": holds no run; name the folder of one", near_run(run, root));
  std::error_code error;
  if (fs::exists(run, error)) throw ConfigError(run, ": a file; name the folder of a run");
  const std::string near = run.find('/') == std::string::npos ? "" : config::near_entry(run);
  throw ConfigError(run, ": no such run", near.empty() ? near_run(run, root) : near);
}

std::vector<std::string> find_runs(const std::vector<std::string>& words, const std::string& root) {
  std::vector<std::string> runs = words.empty() ? runs_in(root) : std::vector<std::string>{};
  for (const std::string& word : words) {
    const std::string path = without_last_slash(word);
    const bool has_runs = is_folder(path) && !is_run(path);
    const auto inside = has_runs ? runs_in(path) : std::vector<std::string>{find_run(path, root)};
    if (inside.empty()) throw ConfigError(path, ": no run, and no folder of runs");
    runs.insert(runs.end(), inside.begin(), inside.end());
  }
  std::sort(runs.begin(), runs.end(), comes_before);
  runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  return runs;
}

}  // namespace lockstep::launch
