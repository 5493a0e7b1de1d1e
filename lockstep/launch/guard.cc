#include "lockstep/launch/guard.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "lockstep/base/board.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"

namespace lockstep::launch {
namespace {

constexpr pid_t kGoHome = 0;

// The guard process: it reads groups from the lifeline, a pipe, until that ends. A session of its own keeps the
// terminal's signals away. Nothing here allocates, because the process that forked may have threads.
[[noreturn]] void stand_guard(int lifeline) {
  setsid();
  prctl(PR_SET_NAME, "lockstep-guard");
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  dup2(lifeline, STDIN_FILENO);
  close_range(STDIN_FILENO + 1, ~0U, 0);

  std::array<pid_t, kMaxLocalRanks> groups{};
  size_t count = 0;
  for (;;) {
    pid_t group = kGoHome;
    const ssize_t got = read(STDIN_FILENO, &group, sizeof group);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof group) break;
    if (group == kGoHome) _exit(0);
    groups.at(count++) = group;
  }
  for (size_t i = 0; i < count; ++i) kill(-groups[i], SIGKILL);
  _exit(0);
}

}  // namespace

Guard::Guard() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw IoError("can't make a pipe: ", errno_text(errno));
  const Descriptor read_end(ends[0]);
  lifeline_ = Descriptor(ends[1]);
  pid_ = fork();
  if (pid_ == 0) stand_guard(read_end.get());
  if (pid_ < 0) throw IoError("can't start the launcher's guard process: ", errno_text(errno));
}

Guard::~Guard() {
  watch(kGoHome);
  lifeline_ = Descriptor();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guard::watch(pid_t group) {
  if (group != kGoHome && ++watched_ > kMaxLocalRanks) {
    throw BugError("the launcher's guard watches at most ", kMaxLocalRanks, " process groups");
  }
  // A guard that somebody killed is no reason to stop a run: the kernel still ends the workers with the launcher.
  write_all(lifeline_.get(), {reinterpret_cast<const char*>(&group), sizeof group});
}

}  // namespace lockstep::launch
