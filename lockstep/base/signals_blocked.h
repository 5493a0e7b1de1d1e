// Keeps signals from threads that begin within a scope.
#pragma once

#include <pthread.h>

#include <csignal>

namespace lockstep {

// While one lives, its thread has all signals blocked. Threads that begin meanwhile have them blocked for ever: they
// are none of those that may get the process's signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace lockstep
