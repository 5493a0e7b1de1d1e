// SIGINT, SIGTERM, SIGHUP, SIGQUIT (Ctrl-\), SIGUSR1, SIGUSR2, SIGTSTP (Ctrl-Z), SIGWINCH and SIGCHLD as events of a
// descriptor.
#pragma once

#include <csignal>
#include <optional>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

// Takes over these signals, and ignores SIGPIPE, while the object lives. Ends of children are known meanwhile even if
// whoever started this program ignores SIGCHLD. One thread: the program's only one, or the only one that does not block
// signals.
class SignalWatch {
 public:
  // Signals that were ignored when the program started (nohup, a shell's background job) stay ignored, but for SIGCHLD.
  // Throws IoError.
  SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

  int descriptor() const { return descriptor_.get(); }  // readable once a signal has come
  std::optional<int> next();                            // the next signal that has come; does not wait
  bool has_stop() const;  // whether SIGINT, SIGTERM or SIGHUP is among those that next() will return

  // Stops this process as SIGTSTP does by itself, and returns when it goes on.
  void stop_here() const;

 private:
  sigset_t before_{};
  struct sigaction child_before_ {};
  struct sigaction pipe_before_ {};
  Descriptor descriptor_;
};

}  // namespace lockstep::launch
