// Child processes: started by exec, watched through descriptors, killed with their owner.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

// How a process ended.
struct ExitStatus {
  int code = 0;    // with signal 0: the exit code
  int signal = 0;  // 0: it exited by itself
  // Whether nobody can tell any more, because other code of this program has waited for it or ignores SIGCHLD. It then
  // counts as failed, with the code of a misuse.
  bool lost = false;

  bool ok() const { return code == 0 && signal == 0; }
  int exit_code() const { return signal != 0 ? 128 + signal : code; }
  std::string text() const;  // "was killed by SIGKILL", "exited with code 3"
};

struct SpawnRequest {
  std::vector<std::string> command;      // the program's path, then its arguments
  std::vector<std::string> environment;  // the whole environment, each "NAME=value"
  std::vector<int> inherited;            // descriptors that the child inherits, under the same numbers
  std::string program = {};              // the file to run; empty: command[0]
  int in = -1;                           // the child's standard input; -1: it is empty
  bool piped = true;                     // false: the child writes to this process's standard output and error
  bool pty = false;                      // its standard output is a pseudo-terminal, where the system has one to give
  int columns = 0;                       // that terminal's width; 0: 80
  std::vector<int> cpus = {};            // those that the child may run on; empty: this process's
};

// A child process in a process group of its own, with pipes or a terminal for its output.
// The kernel kills it when the thread that started it ends for any reason. One thread.
class Child {
 public:
  // Throws ConfigError if the program can't be run, IoError if the machine has no room for a process.
  explicit Child(const SpawnRequest& request);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();  // kills the group and reaps the process

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable once the process has ended
  // The reading ends of its standard output and error, non-blocking; empty if they are not piped. The owner reads each
  // to its end and closes it. A terminal's end is the error EIO.
  Descriptor out, err;

  // How the process ended; nothing while it runs. It is not reaped yet (but by others: ExitStatus::lost), so that no
  // other process can get its pid or its group's.
  std::optional<ExitStatus> ended() const;
  // Sends the signal to all processes of the group, which includes those that the child has started; never to another
  // group that got the same number.
  void signal_group(int signal) const;
  // Tells the child's terminal, if it has one, its new width.
  void resize(int columns) const;

 private:
  pid_t pid_ = -1;
  Descriptor pidfd_;
};

// The path of a program: `program` itself if it has a slash, otherwise the first executable of that name in $PATH's
// folders. Throws ConfigError if there is none.
std::string find_program(const std::string& program);

}  // namespace lockstep::launch
