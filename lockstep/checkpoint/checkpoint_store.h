// The checkpoints of one run: step-000500.pt …, with last.pt and best.pt as links to the right ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// One process writes a store (rank 0); any number may read it meanwhile.
class CheckpointStore {
 public:
  struct Options {
    int keep_last = 3;  // older ones are removed after each save, but never last.pt's and best.pt's; 0: all are kept
  };
  struct Saved {
    int64_t step = 0;
    std::string path;
  };
  struct Loaded {
    Saved saved;
    Value value;
    std::vector<std::string> warnings;  // for each newer checkpoint the line that says why it could not be read
  };

  // `folder` is the run's checkpoints/, made when something is saved.
  explicit CheckpointStore(std::string folder) : CheckpointStore(std::move(folder), Options{}) {}
  CheckpointStore(std::string folder, Options options);

  // Writes the checkpoint of a step (not negative) and then lets last.pt point to it; each of both is atomic. Returns
  // its path. Throws IoError; what was saved before is then still there.
  std::string save(int64_t step, const Value& value);
  // Lets best.pt point to the checkpoint of a step. Throws BugError if there is none.
  void mark_best(int64_t step);

  // What is there, in ascending order of steps; readable or not.
  std::vector<Saved> list() const;
  // The newest checkpoint that can be read; nothing if there is none at all. Throws DataError if there are some, but
  // none can be read.
  std::optional<Loaded> load_newest() const;
  // Removes the checkpoints of later steps, for a run that goes on from `step` and writes them anew; last.pt then leads
  // to the newest that stays, and best.pt goes if it was one of them. Throws IoError.
  void cut_back(int64_t step) const;

 private:
  void prune() const;
  bool is_linked(const Saved& saved) const;
  std::string path_of(int64_t step) const;

  std::string folder_;
  Options options_;
};

}  // namespace lockstep::checkpoint
