#include "lockstep/base/stack_on_signal.h"

#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>

#include "lockstep/base/env.h"

namespace lockstep {
namespace {

constexpr std::string_view kTitle = "stack, the innermost call first (addr2line -Cfe PROGRAM OFFSET names a line):\n";
std::atomic<bool> writes_for_launcher = false;
constexpr int kOwnFrames = 2;  // the handler's, and the kernel's way into it

void on_signal(int) {
  const int before = errno;
  std::array<void*, 64> frames;
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  static_cast<void>(!write(STDERR_FILENO, kTitle.data(), kTitle.size()));
  if (count > kOwnFrames) backtrace_symbols_fd(frames.data() + kOwnFrames, count - kOwnFrames, STDERR_FILENO);
  errno = before;
}

}  // namespace

void write_stack_on(int signal) {
  std::array<void*, 1> frame;
  backtrace(frame.data(), 1);  // its first call loads a library, which a handler must not
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

void write_stack_for_launcher() {
  write_stack_on(SIGUSR2);
  if (env("LOCKSTEP_NODE_MEMORY")) write_stack_on(SIGQUIT);
  writes_for_launcher = true;
}

bool writes_stack_for_launcher() { return writes_for_launcher; }

}  // namespace lockstep
