#include "lockstep/launch/runs_root.h"

#include <charconv>
#include <system_error>

#include "lockstep/base/error.h"
#include "lockstep/base/folder_entries.h"
#include "lockstep/train/folder/run_folder.h"

namespace lockstep::launch {

namespace fs = std::filesystem;

int number_of(const fs::path& folder, const std::string& recipe) {
  const std::string name = folder.filename().string();
  return name.substr(0, name.rfind('-')) == recipe ? number_of(folder) : 0;
}

int number_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  const size_t dash = name.rfind('-');
  if (dash == std::string::npos || dash == 0) return 0;
  int number = 0;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + dash + 1, end, number);
  return read.ec == std::errc() && read.ptr == end && number > 0 ? number : 0;
}

std::string without_last_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string newest_run(const std::string& root, const std::string& recipe) {
  fs::path newest;
  fs::file_time_type latest{};
  for (const auto& path : entries_of(root)) {
    if (number_of(path, recipe) == 0 || !train::holds_checkpoint(path)) continue;
    std::error_code error;
    const auto written = fs::last_write_time(path / "checkpoints", error);  // a checkpoint is renamed into it
    if (!error && (newest.empty() || written > latest)) {
      newest = path;
      latest = written;
    }
  }
  if (newest.empty()) {
    throw ConfigError("--resume: no run of ", recipe, " with a checkpoint under ", root,
                      "; name one, or leave --resume out");
  }
  return newest.string();
}

}  // namespace lockstep::launch
