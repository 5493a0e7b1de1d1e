// The folder of a run. It is chosen, created, locked and proved writable before any process is started.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/log.h"
#include "lockstep/launch/resumed.h"
#include "lockstep/train/folder/folder_watch.h"
#include "lockstep/train/folder/run_lock.h"
#include "lockstep/train/options/train_options.h"

namespace lockstep::launch {

// A run's folder on another node's disk.
struct OtherFolder {
  std::string path;      // the same on all nodes
  std::string id;        // the run's (RunDirectory::id())
  std::string mark;      // the name of a file that lies in it now, and that no other folder has
  bool goes_on = false;  // the run goes on in it
};

// The owner of the folder: no other run can have it before this object and all copies of its lock's descriptor are
// gone.
class RunDirectory {
 public:
  // Creates the folder that `options` ask for, with checkpoints/, logs/ and errors/, and takes its lock:
  //   none of the options below     runs_root/<recipe>-<n>, the next free n
  //   --out DIR                     that folder
  //   --resume DIR | newest FILE    the folder of the resumed run
  //   --resume                      the newest run of the recipe under `runs_root` (or --out) that has a checkpoint
  //   --resume an older FILE        a new folder as without options, for later checkpoints stay; with --overwrite the
  //                                 folder of the resumed run
  //   --resume … --out another DIR  that folder
  // A folder that is to begin a run and holds one is refused, unless that run saved no checkpoint and --overwrite is
  // given. A further start takes the folder of the earlier one (find_start(), of these options) and goes on there from
  // the newest checkpoint, whatever is asked for; if there is none yet, it does there what is asked for. There must be
  // something to do: find_done() says nothing. Throws ConfigError or IoError, and then leaves nothing behind.
  static RunDirectory prepare(const train::TrainOptions& options, const Start& start);

  // Prepares this node's folder of a run that another node's rank has prepared, for --save-on node: created if it is
  // not there, with its lock. A folder that holds another run is refused, and so is one with checkpoints of this run
  // where it begins. Nothing if both nodes see one folder. Throws ConfigError or IoError, and then leaves nothing
  // behind.
  static std::optional<RunDirectory> prepare_other(const OtherFolder& other, const Start& start);

  const std::string& path() const { return path_; }
  // What tells the run's folders on several nodes from other runs' of the same path. Writes it if there is none.
  std::string id() const;
  std::string logs() const { return path_ + "/logs"; }
  std::string errors() const { return path_ + "/errors"; }
  // The folder of a run or the checkpoint's file from which to resume; nothing for a fresh run.
  const std::optional<std::string>& resume() const { return resume_; }
  const train::RunLock& lock() const { return *lock_; }
  // For people: that a script has computed the command line anew, with both lines; empty if it has not.
  const std::string& note() const { return note_; }
  // Warns of the lock's and of the note's text.
  void warn(const Logger& log) const;

  // Notes that the command has trained to its end, for further starts of its job. Throws IoError.
  void mark_ended() { lock_->mark_ended(); }

  // Removes what prepare() created if it holds no checkpoint, metrics or results, because a mistake ended the run
  // before it began. Folders go only if they are empty then. A folder that was there is its earlier job's again.
  void discard_if_unused();

 private:
  void make_folders(const std::string& path);
  void make_own_folders();
  void make_next_free(const std::string& root, const std::string& recipe);
  void take_lock(const Start& start, const std::string& option);
  void remove_files() const;
  bool has_made(const std::string& folder) const;

  std::string path_, note_;
  std::optional<std::string> resume_;
  std::vector<std::string> made_;  // folders that were not there before, parents first
  bool made_lock_ = false;
  std::optional<train::RunLock> lock_;
  std::vector<train::JobCommand> earlier_;  // that the lock named
  std::optional<train::FolderWatch> watch_;
};

// Makes the options those of a run in this folder, which resumes from `resume`: sets --out and --resume. A run that
// goes on takes no weights of --load.
void go_on(train::TrainOptions& options, const std::string& folder, const std::optional<std::string>& resume);

// Throws ConfigError if a file or folder that the options name does not exist.
void check_inputs(const train::TrainOptions& options);

}  // namespace lockstep::launch
