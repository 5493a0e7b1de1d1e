// The folder of a run's checkpoints, step-000500.pt …, and of the links last.pt and best.pt. Reads and makes no
// checkpoint, and links no libtorch.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/names/step_files.h"

namespace lockstep::checkpoint {

// One process, and one thread at a time, writes into a folder. Any number of processes may read it meanwhile.
class StepFolder {
 public:
  // `folder` is the run's checkpoints/. The first save creates it. Of the numbered checkpoints a save keeps the newest
  // `keep_last`, besides last.pt's and best.pt's; 0: it keeps all.
  StepFolder(std::string folder, int keep_last) : folder_(std::move(folder)), keep_last_(keep_last) {}

  std::string path_of(int64_t step) const { return folder_ + "/" + step_file_name(step); }

  // Calls `write` with the path of the checkpoint of a step (not negative), which it is to write atomically, points
  // last.pt to it and returns its path. Throws IoError; the earlier checkpoints then remain.
  std::string save(int64_t step, const std::function<void(const std::string& path)>& write) const;
  // As CheckpointStore's of these names.
  std::string adopt(int64_t step, const std::string& file) const;
  void mark_best(int64_t step) const;
  std::optional<int64_t> best() const;
  std::vector<StepFile> list() const { return step_files_in(folder_); }
  void cut_back(int64_t step) const;

 private:
  void make(int64_t step) const;
  void prune() const;
  void sweep(const std::string& prefix) const;
  bool is_linked(const StepFile& saved) const;

  std::string folder_;
  int keep_last_;
};

}  // namespace lockstep::checkpoint
