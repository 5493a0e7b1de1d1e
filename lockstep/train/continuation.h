// The files of a run that goes on: the checkpoint that it resumes from, and a folder that ends where it goes on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/shared_memory.h"
#include "lockstep/checkpoint/checkpoint_store.h"
#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/training_state.h"

namespace lockstep::train {

// The checkpoint that a run resumes from.
struct ResumedCheckpoint {
  std::string file;
  checkpoint::Value value;
  TrainingState state;
  std::vector<checkpoint::CheckpointStore::Damaged> damaged = {};  // the newer ones, which can't be read
  std::optional<bool> in_place = {};  // whether its run goes on, where this rank does not see its folder
  Descriptor memory = {};             // that holds the file, where it is on another node's disk alone
};

// Reads a checkpoint's file, or of a run's folder the newest checkpoint that can be read: the interrupted state, unless
// there is one of a later step. Damaged ones are passed over. A link is followed first, so that `file` names what was
// read. Throws ConfigError if there is none, DataError, IoError.
ResumedCheckpoint read_resumed(const std::string& resume, const checkpoint::ReadOptions& options = {});

// Throws ConfigError if the run has passed over more samples than `most`: they stay passed over.
void check_skip_bad(const ResumedCheckpoint& resumed, int64_t most);

// Refuses a file, named by `resume`, from which the run of this folder would go back in place: throws ConfigError if
// the folder has a checkpoint of a later step, such as where an interrupted state is older than its name says.
void refuse_going_back(const RunFiles& files, const ResumedCheckpoint& from, const std::string& resume);

// The checkpoint that a path names for those who only read it: the file itself, or of a run's folder the one from which
// a resume would go on, or of a folder of safetensors the model's (checkpoint/formats/safetensors_index.h). `name` says
// what named the path, for messages: "inspect", "--load". Throws ConfigError, DataError, IoError.
struct NamedCheckpoint {
  std::string file;
  std::vector<std::string> warnings = {};  // newer ones, which can't be read
};
NamedCheckpoint find_checkpoint(const std::string& name, const std::string& path,
                                const checkpoint::ReadOptions& options = {});

// The same, whatever program has written the checkpoint: a folder is a run's, or holds checkpoints itself.
NamedCheckpoint find_any_checkpoint(const std::string& name, const std::string& path,
                                    const checkpoint::ReadOptions& options = {});

// Returns the steps of the run whose results a file holds; 0 if there is none.
int64_t steps_in(const std::string& final_json);

// Keeps the damaged checkpoints of a run that goes on under names of their own, with ".damaged" added. Returns the
// warnings, which name these. Rank 0's. Throws IoError.
std::vector<std::string> set_aside(const ResumedCheckpoint& from);

// What was done to a folder before its run goes on.
struct Continued {
  std::vector<std::string> evaluated;  // the splits of which metrics.jsonl has evaluations at the run's step
  std::vector<std::string> dropped;    // for people: what lay in the folder and belongs to later steps
};

// Prepares the folder of a run that goes on in it at `step`: cuts the metrics, removes what belongs to later steps, and
// gives the interrupted state that it goes on from its step's number; any other is removed. A run that begins goes on
// at step 0. `resumed_from` is the checkpoint's file; empty for a run that begins. Rank 0's. Throws IoError.
Continued cut_back(const RunFiles& files, int64_t step, const std::string& resumed_from);

// Prepares the folder of a run that was forked from a checkpoint of another: writes the checkpoint as it was read, and
// copies the other run's best so far and its metrics up to there, so that the new folder stands for itself from its
// first moment; where that fails, nothing of it remains. The other run's folder stays as it is. Rank 0's. Throws
// IoError.
Continued take_over(const RunFiles& files, const ResumedCheckpoint& from);

}  // namespace lockstep::train
