// The checkpoints of one run: step-000500.pt …, and the links last.pt and best.pt.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/files/step_folder.h"
#include "lockstep/checkpoint/formats/read_options.h"
#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/checkpoint/names/step_files.h"

namespace lockstep::checkpoint {

// One process (rank 0) writes a store. Any number of processes may read it meanwhile.
class CheckpointStore {
 public:
  struct Options {
    int keep_last = 3;  // the newest ones that a save keeps, besides last.pt's and best.pt's; 0: it keeps all
  };
  using Saved = StepFile;
  struct Damaged {
    std::string path, why;
  };
  struct Loaded {
    Saved saved;
    Value value;
    std::vector<Damaged> damaged;  // the newer checkpoints, which can't be read
  };

  // `folder` is the run's checkpoints/. The first save creates it.
  explicit CheckpointStore(std::string folder) : CheckpointStore(std::move(folder), Options{}) {}
  CheckpointStore(std::string folder, Options options);

  const std::string& folder() const { return folder_; }
  int keep_last() const { return keep_last_; }

  // Writes the checkpoint of a step (not negative), points last.pt to it and returns its path. Each of the two is
  // atomic. Throws IoError; the earlier checkpoints then remain. `on_progress` is called meanwhile (atomic_file.h).
  std::string save(int64_t step, const Value& value, const std::function<void()>& on_progress = {});
  // Throws ConfigError if there is a checkpoint of a later step that can be read: load_newest() would take it, and not
  // what a loop saves that went on from an older file, or began anew.
  void refuse_later(int64_t step) const;
  // Copies a file of another run as the checkpoint of a step, for a run that was forked from it, points last.pt to the
  // newest and returns the copy's path. Throws IoError.
  std::string adopt(int64_t step, const std::string& file) { return files_.adopt(step, file); }
  // Points best.pt to the checkpoint of a step. Throws BugError if there is none.
  void mark_best(int64_t step) { files_.mark_best(step); }
  // The step that best.pt points to; nothing if there is no best.pt.
  std::optional<int64_t> best() const { return files_.best(); }

  // The checkpoints in ascending order of steps, readable or not.
  std::vector<Saved> list() const { return files_.list(); }
  // The newest checkpoint that is not damaged, opened (formats/read_checkpoint.h); nothing if the folder has none.
  // Throws DataError if it has some and all are damaged, IoError where the machine does not let it read a newer one.
  std::optional<Loaded> load_newest(const ReadOptions& options = {}) const;
  // Removes the checkpoints of later steps, for a run that resumes at `step` and writes them anew. last.pt then points
  // to the newest that remains; best.pt is removed with its checkpoint. So is what killed writers have left. Throws
  // IoError.
  void cut_back(int64_t step) const { files_.cut_back(step); }

 private:
  std::string folder_;
  int keep_last_;
  StepFolder files_;
  // Later checkpoints that refuse_later() has found damaged, with when they were written: each is read once.
  mutable std::map<std::string, std::filesystem::file_time_type> damaged_;
};

}  // namespace lockstep::checkpoint
