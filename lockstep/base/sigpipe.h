// Protection from SIGPIPE, which ends a process by default when it writes to a connection that its peer has closed.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace lockstep {

// While it lives, this thread, and threads that it begins for all of their lives, get EPIPE from such a write instead.
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
