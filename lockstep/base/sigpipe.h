// Protection from SIGPIPE, which ends a process by default when it writes to a connection that its peer has closed.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace lockstep {

// Blocks SIGPIPE in this thread while the object lives: such a write returns EPIPE instead, and its signal is gone with
// the object. Threads that this thread starts meanwhile inherit the block for all of their lives.
class SigpipeBlocked {
 public:
  SigpipeBlocked() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeBlocked() {
    const timespec at_once{};
    if (!sigismember(&before_, SIGPIPE)) sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlocked(const SigpipeBlocked&) = delete;
  SigpipeBlocked& operator=(const SigpipeBlocked&) = delete;

 private:
  sigset_t pipe_, before_;
};

}  // namespace lockstep
