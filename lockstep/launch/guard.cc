#include "lockstep/launch/guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "lockstep/base/board.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/sigpipe.h"

namespace lockstep::launch {
namespace {

constexpr pid_t kGoHome = 0;

// The functions until stand_guard() allocate nothing, because the process that forked may have threads.

// Whether the environment in the file holds the entry, which has a NUL before and after it.
bool bears_mark(const char* environment, std::string_view entry) {
  static std::array<char, 64 * 1024> bytes;  // read in parts that overlap by the entry's length
  const Descriptor file(open(environment, O_RDONLY | O_CLOEXEC));
  size_t kept = 1;
  bytes[0] = '\0';
  for (;;) {
    const ssize_t got = read(file.get(), bytes.data() + kept, bytes.size() - kept);
    if (got <= 0) return false;
    const std::string_view text(bytes.data(), kept + static_cast<size_t>(got));
    if (text.find(entry) != std::string_view::npos) return true;
    kept = std::min(text.size(), entry.size());
    std::memmove(bytes.data(), bytes.data() + text.size() - kept, kept);
  }
}

// Kills the processes that bear the mark. Returns whether there were any.
bool kill_marked(std::string_view entry) {
  static std::array<char, 32 * 1024> entries;
  const Descriptor all(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  bool any = false;
  for (;;) {
    const long got = syscall(SYS_getdents64, all.get(), entries.data(), entries.size());
    if (got <= 0) return any;
    for (long at = 0; at < got;) {
      const auto* const named = reinterpret_cast<const dirent64*>(entries.data() + at);
      at += named->d_reclen;
      const int pid = std::atoi(named->d_name);
      if (pid <= 0) continue;
      // First the descriptor, so that the number can't become another's in between.
      const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
      char path[64];
      std::snprintf(path, sizeof path, "/proc/%d/environ", pid);
      if (!process || !bears_mark(path, entry)) continue;
      any = syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) == 0 || any;
    }
  }
}

// The guard process: it reads groups from the lifeline, a pipe, until that ends. A session of its own keeps the
// terminal's signals away.
[[noreturn]] void stand_guard(int lifeline, std::string_view mark) {
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
  constexpr int kPasses = 10;  // one may have started another meanwhile
  for (int pass = 0; mark.size() > 2 && pass < kPasses && kill_marked(mark); ++pass) {
  }
  _exit(0);
}

}  // namespace

Guard::Guard(const std::string& mark) {
  const std::string entry = cat('\0', mark, '\0');
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw IoError("can't make a pipe: ", errno_text(errno));
  const Descriptor read_end(ends[0]);
  lifeline_ = Descriptor(ends[1]);
  pid_ = fork();
  if (pid_ == 0) stand_guard(read_end.get(), entry);
  if (pid_ < 0) throw IoError("can't start the launcher's guard process: ", errno_text(errno));
}

Guard::~Guard() {
  watch(kGoHome);
  lifeline_ = Descriptor();
  if (pid_ > 0) kill(pid_, SIGCONT);  // somebody may have stopped it
  while (pid_ > 0 && waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool Guard::lost() {
  if (pid_ < 0 || waitpid(pid_, nullptr, WNOHANG) != pid_) return false;
  pid_ = -1;
  return true;
}

std::string run_mark() { return cat("LOCKSTEP_LAUNCH=", getpid(), '.', monotonic_ns()); }

void Guard::watch(pid_t group) {
  if (group != kGoHome && ++watched_ > kMaxLocalRanks) {
    throw BugError("the launcher's guard watches at most ", kMaxLocalRanks, " process groups");
  }
  // A guard that somebody killed is no reason to stop a run: the kernel still ends the workers with the launcher.
  const SigpipeBlocked no_signal;
  write_all(lifeline_.get(), {reinterpret_cast<const char*>(&group), sizeof group});
}

}  // namespace lockstep::launch
