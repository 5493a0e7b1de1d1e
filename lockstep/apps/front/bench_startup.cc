#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "commands.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/launch/launcher.h"
#include "lockstep/launch/run_directory.h"
#include "lockstep/parallel/options/lanes.h"
#include "lockstep/recipes/options/recipe_options.h"
#include "lockstep/train/options/train_command.h"

namespace lockstep::front {
namespace {

constexpr int kRepeats = 5;

// A folder that goes with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = (std::filesystem::temp_directory_path() / "lockstep-bench-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) throw IoError(path_, ": can't make this folder: ", errno_text(errno));
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Seconds from the launch to the end of the first step; its exit code in `code`.
double first_step_seconds(const std::string& worker, int nproc, int& code) {
  const TemporaryFolder folder;
  train::TrainCommand line("lockstep", recipes::describe_recipes());
  line.read({"mnist", "--out", folder.path(), "--nproc", std::to_string(nproc), "--steps", "1", "--quiet"},
            {.cores = nproc});
  const auto run = launch::RunDirectory::prepare(line.options(), {});
  std::vector<std::string> command = {worker};
  for (auto& argument : line.arguments()) command.push_back(std::move(argument));
  using launch::Launcher;
  Launcher launcher({.command = std::move(command),
                     .nproc = nproc,
                     .threads = parallel::default_threads(usable_cores(), nproc),
                     .quiet = true,
                     .stop_by = Launcher::StopBy::kSignal,
                     .run_lock = run.lock().descriptor()});
  const int64_t start = monotonic_ns();
  code = launcher.run();
  const auto end = static_cast<int64_t>(launcher.board().first_step_ns.load());
  if (code == 0 && end == 0) throw BugError("bench startup: the worker did not say when its first step ended");
  return static_cast<double>(end - start) * 1e-9;
}

}  // namespace

int bench_startup(int nproc, bool json) {
  const std::string worker = worker_program();
  std::vector<double> seconds;
  for (int i = 0; i < kRepeats; ++i) {
    int code = 0;
    seconds.push_back(first_step_seconds(worker, nproc, code));
    if (code != 0) return code;
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  const std::string line = json ? nlohmann::json{{"first_step_seconds", median}}.dump()
                                : cat("first step done after ", median, " s (median of ", kRepeats, " starts, ", nproc,
                                      nproc == 1 ? " rank)" : " ranks)");
  print(line + '\n');
  return 0;
}

}  // namespace lockstep::front
