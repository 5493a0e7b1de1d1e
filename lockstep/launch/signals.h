// SIGINT, SIGTERM and SIGHUP as events of a descriptor.
#pragma once

#include <csignal>
#include <optional>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

// Takes over these signals, and ignores SIGPIPE, while the object lives. One thread: the program's only one, or the
// only one that does not block signals.
class SignalWatch {
 public:
  // Signals that were ignored when the program started (nohup, a shell's background job) stay ignored. Throws IoError.
  SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

  int descriptor() const { return descriptor_.get(); }  // readable once a signal has come
  std::optional<int> next();                            // the next signal that has come; does not wait

 private:
  sigset_t before_{};
  struct sigaction pipe_before_ {};
  Descriptor descriptor_;
};

}  // namespace lockstep::launch
