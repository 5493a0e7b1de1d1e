// SIGINT, SIGTERM and SIGHUP as events of a descriptor, for as long as this lives; SIGPIPE is off meanwhile.
#pragma once

#include <csignal>
#include <optional>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

// One thread, the program's only one or the one that signals are left to.
class SignalWatch {
 public:
  // Signals that the program was started with as ignored (nohup, a shell's background job) stay so. Throws IoError.
  SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

  int descriptor() const { return descriptor_.get(); }  // readable once one has come
  std::optional<int> next();                            // the next that has come; does not wait

 private:
  sigset_t before_{};
  struct sigaction pipe_before_ {};
  Descriptor descriptor_;
};

}  // namespace lockstep::launch
