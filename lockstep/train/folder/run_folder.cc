#include "lockstep/train/folder/run_folder.h"

#include <algorithm>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/folder_entries.h"
#include "lockstep/base/path_kind.h"
#include "lockstep/checkpoint/names/step_files.h"
#include "lockstep/train/folder/run_files.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

// "runs/a" of "runs/a/checkpoints/last.pt", whatever the last is; empty for a file of another folder.
std::string run_above(const fs::path& file) {
  const fs::path folder = fs::absolute(file).parent_path();
  if (folder.filename() != "checkpoints") return "";
  const fs::path named = file.parent_path();
  if (named.filename() != "checkpoints") return folder.parent_path().string();
  return named.parent_path().empty() ? "." : named.parent_path().string();
}

bool has_safetensors(const std::string& folder) {
  const auto entries = entries_of(folder);
  return std::ranges::any_of(entries, [](const fs::path& path) { return path.extension() == ".safetensors"; });
}

}  // namespace

bool holds_checkpoint(const std::string& folder) {
  const auto entries = entries_of(RunFiles{folder}.checkpoints());
  return std::ranges::any_of(entries, [](const fs::path& path) { return path.extension() == ".pt"; });
}

bool holds_run(const std::string& folder) {
  const RunFiles files{folder};
  return is_there(files.final_json()) || is_there(files.metrics()) || holds_checkpoint(folder);
}

std::optional<std::string> newest_checkpoint(const std::string& folder) {
  const RunFiles files{folder};
  if (is_there(files.interrupted())) return files.interrupted();
  const auto steps = checkpoint::step_files_in(files.checkpoints());
  if (steps.empty()) return std::nullopt;
  return steps.back().path;
}

std::string run_of(const std::string& file) {
  if (const std::string run = run_above(file); !run.empty()) return run;
  std::error_code error;
  const fs::path target = fs::canonical(file, error);
  return error ? "" : run_above(target);
}

std::string numbered_checkpoint(const std::string& file) {
  constexpr int kMostLinks = 40;  // as many as the kernel follows
  fs::path at = file;
  for (int links = 0; links < kMostLinks && !checkpoint::step_of_name(at.filename().string()); ++links) {
    std::error_code error;
    const fs::path target = fs::read_symlink(at, error);
    if (error) return file;
    at = at.parent_path() / target;
  }
  return same_place(run_of(file), run_of(at.string())) ? at.string() : file;
}

bool is_newest(const std::string& file) {
  const auto newest = newest_checkpoint(run_of(file));
  return newest && same_place(*newest, file);
}

bool same_place(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error);
}

std::string checkpoint_at(const std::string& name, const std::string& path) {
  if (!is_folder(path)) return path;
  if (const auto newest = newest_checkpoint(path)) return *newest;
  if (has_safetensors(path)) return path;  // their reader takes a folder
  throw ConfigError(name, ' ', path, ": no run's folder with a checkpoint in its checkpoints/; name a file (.pt)");
}

}  // namespace lockstep::train
