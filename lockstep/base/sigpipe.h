// Protection from SIGPIPE, which ends a process by default when it writes to a connection that its peer has closed.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace lockstep {

// Blocks SIGPIPE in this thread while the object lives: such a write returns EPIPE instead. Threads that this thread
// starts meanwhile inherit the block for all of their lives.
class SigpipeBlocked {
 public:
  SigpipeBlocked() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  ~SigpipeBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SigpipeBlocked(const SigpipeBlocked&) = delete;
  SigpipeBlocked& operator=(const SigpipeBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace lockstep
