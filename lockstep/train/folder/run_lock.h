// The ownership of a run's folder: a lock on the file `lock` in it. The kernel takes it back when the last process that
// holds its descriptor ends, however it ends. So the front passes the descriptor to its workers: the folder is free
// when all of them are gone, and not before.
#pragma once

#include <sys/file.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/shared_memory.h"

namespace lockstep::train {

// A command of a launcher's job that has begun the run of a folder, or gone on with it.
struct JobCommand {
  std::string job;     // the job and the command, for programs; one line
  std::string line;    // the command line, for people; one line
  bool ended = false;  // it has trained to its end
  bool operator==(const JobCommand&) const = default;
};

// Who holds the lock of a folder.
struct LockOwner {
  bool held = false;      // a run is under way there
  int pid = 0;            // of the process that took the lock, the front or rank 0; 0: not known
  std::string host = {};  // its host
  bool operator==(const LockOwner&) const = default;
};

// Looks at a folder's lock, which stays as it is. Nobody holds one that is not there or can't be read. Any thread.
LockOwner owner_of(const std::string& folder);

// Whether the process of this host has the folder's lock open, as the processes of its run have; nothing where that may
// not be known, as of another user's process.
std::optional<bool> has_lock_open(int pid, const std::string& folder);

class RunLock {
 public:
  // What the lock is taken by. Tests give others.
  struct Means {
    int (*lock_file)(int descriptor, int operation) = ::flock;
    std::chrono::milliseconds patience{10'000};  // with processes whose owner has ended
    // How long an owner is waited for whether it has ended or goes on: an earlier start of the same job on a node that
    // the others have given up. Then a CommError is thrown, for a further start may find the folder free.
    std::chrono::milliseconds patience_with_owner{0};
    std::function<void(const std::string&)> say = [](const auto&) {};  // a line for people, every three seconds
    std::function<bool()> stop_asked = [] { return false; };           // ends the wait with kExitStoppedOnRequest
  };

  // Takes the lock of a folder, and writes this host and process to the file. `option` is what named the folder, for
  // messages: "--out runs/a". If the owner was a process of this host that has ended, its workers are about to end as
  // well, and the call waits for them. Throws ConfigError that names the owner if there is one, IoError if the folder
  // can't be written.
  static RunLock take(const std::string& folder, const std::string& option);
  static RunLock take(const std::string& folder, const std::string& option, const Means& means);

  // Returns the lock that the front has taken and passed to this process, closed to the processes that this one
  // starts; nothing if there was none. Throws ConfigError if the variable of its descriptor, LOCKSTEP_RUN_LOCK, names
  // something else than the folder's lock.
  static std::optional<RunLock> inherited(const std::string& folder);

  // The commands of the job whose run it is, the newest first, as set_commands() has named them, whoever has held the
  // lock since; none if it is no job's. Throws IoError, and the folder then has those that were named before.
  const std::vector<JobCommand>& commands() const { return commands_; }
  void set_commands(std::vector<JobCommand> commands);
  // Notes that the newest command has trained to its end. Throws IoError.
  void mark_ended();
  // The commands of a folder whose lock need not be free.
  static std::vector<JobCommand> commands_of(const std::string& folder);

  int descriptor() const { return file_.get(); }
  // For people: that this file system has no locks, so that nothing keeps two runs apart; empty if it has.
  const std::string& warning() const { return warning_; }

 private:
  Descriptor file_;
  std::string path_, warning_;
  std::vector<JobCommand> commands_;
};

// The variable in which the front gives its workers the lock's descriptor.
constexpr const char* kRunLockVariable = "LOCKSTEP_RUN_LOCK";

}  // namespace lockstep::train
