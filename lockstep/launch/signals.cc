#include "lockstep/launch/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "lockstep/base/error.h"

namespace lockstep::launch {

SignalWatch::SignalWatch() {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &usual, &child_before_);
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGWINCH, SIGCHLD}) {
    struct sigaction current {};
    sigaction(signal, nullptr, &current);
    if (current.sa_handler != SIG_IGN) sigaddset(&watched, signal);
  }
  descriptor_ = Descriptor(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor_) throw IoError("can't watch signals: ", errno_text(errno));
  pthread_sigmask(SIG_BLOCK, &watched, &before_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &pipe_before_);
}

SignalWatch::~SignalWatch() {
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  sigaction(SIGCHLD, &child_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> SignalWatch::next() {
  signalfd_siginfo info{};
  if (read(descriptor_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

bool SignalWatch::has_stop() const {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
         sigismember(&pending, SIGHUP) == 1;
}

void SignalWatch::stop_here() const {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  raise(SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);  // it stops here
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
}

}  // namespace lockstep::launch
