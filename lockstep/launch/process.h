// Child processes: started by exec, watched through descriptors, gone when their owner is.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

// How a process ended.
struct ExitStatus {
  int code = 0;
  int signal = 0;  // 0: it exited by itself

  bool ok() const { return code == 0 && signal == 0; }
  int exit_code() const { return signal != 0 ? 128 + signal : code; }
  std::string text() const;  // "was killed by SIGKILL", "exited with code 3"
};

struct SpawnRequest {
  std::vector<std::string> command;      // the program's path, then its arguments
  std::vector<std::string> environment;  // "NAME=value": all of it
  std::vector<int> inherited;            // descriptors that the child gets, under the same numbers
  std::string program = {};              // the file that is run; empty: command[0]
  bool piped = true;                     // false: what it writes goes where this process's output goes
};

// A process in a group of its own, with pipes for its output and nothing to read. The kernel kills it when the thread
// that started it ends, however that comes about. One thread.
class Child {
 public:
  // Throws ConfigError if the program can't be run, IoError if the machine has no room for a process.
  explicit Child(const SpawnRequest& request);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();  // kills the group and takes the process's remains

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable once the process has ended
  // Its standard output and error where they are piped, not blocking; reading one to its end and closing it is the
  // owner's.
  Descriptor out, err;

  // How it ended; nothing while it runs. Its remains stay, so that its number and its group's can't be another's.
  std::optional<ExitStatus> ended() const;
  // To all processes of its group, those that it started included.
  void signal_group(int signal) const;

 private:
  pid_t pid_ = -1;
  Descriptor pidfd_;
};

// The path of `program`: itself if it has a slash, otherwise the first of $PATH's folders that has it as a program.
// Throws ConfigError.
std::string find_program(const std::string& program);

}  // namespace lockstep::launch
