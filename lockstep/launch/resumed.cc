#include "lockstep/launch/resumed.h"

#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/config/inputs.h"
#include "lockstep/launch/runs_root.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/folder/run_folder.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

[[noreturn]] void refuse_folder(const std::string& folder) {
  if (train::holds_run(folder) || is_there(train::RunFiles{folder}.config())) {
    throw ConfigError("--resume ", folder, ": the run has saved no checkpoint yet; begin it anew with --out ", folder,
                      " --overwrite");
  }
  throw ConfigError("--resume ", folder, ": no run's folder, for it has no checkpoints/ with a checkpoint in it");
}

}  // namespace

std::optional<Resumed> find_resumed(const train::TrainOptions& options, const std::string& runs_root) {
  if (!options.resume) return std::nullopt;
  std::string from = options.resume->empty() ? options.out : *options.resume;
  if (from.empty()) from = newest_run(runs_root, options.recipe);
  config::require_there("--resume", from);
  if (!is_folder(from)) return Resumed{from, train::run_of(from), train::is_newest(from)};
  if (!train::holds_checkpoint(from)) refuse_folder(from);
  return Resumed{from, from};
}

std::string find_resumed_config(const train::TrainOptions& options, const std::string& runs_root) {
  const auto resumed = find_resumed(options, runs_root);
  if (!resumed || resumed->run.empty()) return "";
  const std::string config = train::RunFiles{resumed->run}.config();
  return is_there(config) ? config : "";
}

}  // namespace lockstep::launch
