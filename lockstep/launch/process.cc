#include "lockstep/launch/process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sstream>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/pty.h"

namespace lockstep::launch {
namespace {

struct Pipe {
  Descriptor read, write;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw IoError("can't make a pipe: ", errno_text(errno), "; raise the limit on open files (ulimit -n)");
  }
  return {.read = Descriptor(ends[0]), .write = Descriptor(ends[1])};
}

Pipe make_output(const SpawnRequest& request) {
  if (request.pty) {
    if (auto pty = open_pty(request.columns)) return {.read = std::move(pty->master), .write = std::move(pty->slave)};
  }
  return make_pipe();
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// A set of CPUs as the kernel takes it, of any number.
std::vector<unsigned long> cpu_mask(const std::vector<int>& cpus) {
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask;
  for (const int cpu : cpus) {
    const auto at = static_cast<size_t>(cpu);
    mask.resize(std::max(mask.size(), at / kBits + 1));
    mask[at / kBits] |= 1UL << (at % kBits);
  }
  return mask;
}

// Why a child has not become its program.
struct Failure {
  int error;     // errno
  bool binding;  // to its CPUs
};

// The data that the child needs between vfork and exec, where it must neither allocate nor lock.
struct ChildPlan {
  const char* program;
  char* const* arguments;
  char* const* environment;
  const std::vector<int>& inherited;
  int in, out, err;
  int failure;  // the descriptor to which the child writes a Failure
  pid_t parent;
  const std::vector<unsigned long>& cpus;
};

// On a stack that the address sanitizer doesn't know.
[[noreturn, gnu::no_sanitize_address]] void become(const ChildPlan& plan) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.parent) _exit(1);  // the parent died before the line above
  dup2(plan.in, STDIN_FILENO);
  dup2(plan.out, STDOUT_FILENO);
  dup2(plan.err, STDERR_FILENO);
  for (const int fd : plan.inherited) fcntl(fd, F_SETFD, 0);
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const size_t cpu_bytes = plan.cpus.size() * sizeof(unsigned long);
  const bool bound =
      cpu_bytes == 0 || sched_setaffinity(0, cpu_bytes, reinterpret_cast<const cpu_set_t*>(plan.cpus.data())) == 0;
  if (bound) execve(plan.program, plan.arguments, plan.environment);
  const Failure failure{errno, !bound};
  [[maybe_unused]] const ssize_t written = write(plan.failure, &failure, sizeof failure);
  _exit(127);
}

#ifndef LOCKSTEP_THREAD_SANITIZER
[[gnu::no_sanitize_address]] int become_of(void* plan) { become(*static_cast<const ChildPlan*>(plan)); }
#endif

// Starts the child as vfork would, which copies no page tables and is safe whatever threads the caller has, and with a
// descriptor of the process in `pidfd` from the first: a child that ends at once may be reaped by others before its
// number could be looked up. All signals are blocked meanwhile, for a handler of the parent's must not run in the
// child.
pid_t start(const ChildPlan& plan, Descriptor& pidfd) {
  constexpr size_t kStackBytes = 64 * 1024;
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> stack(kStackBytes / sizeof(Line));
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int descriptor = -1;
#ifdef LOCKSTEP_THREAD_SANITIZER  // which knows no child that shares memory
  const pid_t pid = fork();
  if (pid == 0) become(plan);
  if (pid > 0) descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
#else
  const pid_t pid = clone(become_of, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD,
                          const_cast<ChildPlan*>(&plan), &descriptor);
#endif
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid > 0) pidfd = Descriptor(descriptor);
  errno = error;
  return pid;
}

void reap(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// In words, by the errno of execve().
std::string why_not_run(const std::string& program, int error) {
  if (error == ENOENT && access(program.c_str(), X_OK) == 0) {
    return "what its first line (#!) or its header names to run it is not there";
  }
  if (error != ENOEXEC) return errno_text(error);
  return "it is no program of this machine, and names none to run it; begin it with #!/bin/sh, say, or write its "
         "interpreter before it";
}

// Sets errno as access() does.
bool can_run(const std::string& path) {
  struct stat file {};
  if (access(path.c_str(), X_OK) != 0 || stat(path.c_str(), &file) != 0) return false;
  if (S_ISREG(file.st_mode)) return true;
  errno = S_ISDIR(file.st_mode) ? EISDIR : ENOEXEC;
  return false;
}

}  // namespace

std::string ExitStatus::text() const {
  if (lost) return "ended, and other code of this program took its exit status (waitpid(-1), or SIGCHLD ignored)";
  if (signal == 0) return cat("exited with code ", code);
  const char* const name = sigabbrev_np(signal);
  return name != nullptr ? cat("was killed by SIG", name) : cat("was killed by signal ", signal);
}

Child::Child(const SpawnRequest& request) {
  Pipe output, errors, failure = make_pipe();
  if (request.piped) {
    output = make_output(request);
    errors = make_pipe();
  }
  const std::string& program = request.program.empty() ? request.command[0] : request.program;
  const Descriptor null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto arguments = pointers(request.command);
  const auto environment = pointers(request.environment);
  const auto cpus = cpu_mask(request.cpus);
  const pid_t pid = start({.program = program.c_str(),
                           .arguments = arguments.data(),
                           .environment = environment.data(),
                           .inherited = request.inherited,
                           .in = request.in >= 0 ? request.in : null.get(),
                           .out = request.piped ? output.write.get() : STDOUT_FILENO,
                           .err = request.piped ? errors.write.get() : STDERR_FILENO,
                           .failure = failure.write.get(),
                           .parent = getpid(),
                           .cpus = cpus},
                          pidfd_);
  if (pid < 0) throw IoError("can't start ", program, ": ", errno_text(errno));
  failure.write = Descriptor();
  Failure failed{};
  if (read(failure.read.get(), &failed, sizeof failed) == sizeof failed) {
    reap(pid);
    if (failed.binding)
      throw IoError("can't bind ", program, " to CPUs ", ranges(request.cpus), ": ", errno_text(failed.error));
    throw ConfigError("can't run ", program, ": ", why_not_run(program, failed.error));
  }
  pid_ = pid;
  out = std::move(output.read);
  err = std::move(errors.read);
  for (const int fd : {out.get(), err.get()}) {
    if (fd >= 0) fcntl(fd, F_SETFL, O_NONBLOCK);
  }
}

Child::Child(Child&& other) noexcept
    : out(std::move(other.out)),
      err(std::move(other.err)),
      pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)) {}

Child::~Child() {
  if (pid_ < 0) return;
  signal_group(SIGKILL);
  reap(pid_);
}

std::optional<ExitStatus> Child::ended() const {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    if (errno == ECHILD) return ExitStatus{.code = BugError::kExitCode, .lost = true};
    return std::nullopt;
  }
  if (info.si_pid == 0) return std::nullopt;
  if (info.si_code == CLD_EXITED) return ExitStatus{.code = info.si_status};
  return ExitStatus{.signal = info.si_status};
}

void Child::signal_group(int signal) const {
  constexpr unsigned kWholeGroup = 1U << 2;  // PIDFD_SIGNAL_PROCESS_GROUP, since Linux 6.9
  if (pidfd_) {
    if (syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, kWholeGroup) == 0 || errno == ESRCH) return;
  }
  // An older kernel: the number is the group's for sure as long as the child is not reaped.
  const auto status = ended();
  if (!status || !status->lost) kill(-pid_, signal);
}

void Child::resize(int columns) const {
  if (set_columns(out.get(), columns)) signal_group(SIGWINCH);  // it is nobody's controlling terminal
}

std::string find_program(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    if (can_run(program)) return program;
    const char* const advice =
        errno == EACCES ? "; make it executable (chmod +x), or write its interpreter before it" : "";
    throw ConfigError("can't run ", program, ": ", errno_text(errno), advice);
  }
  std::istringstream path(env("PATH").value_or("/usr/local/bin:/usr/bin:/bin"));
  for (std::string folder; std::getline(path, folder, ':');) {
    const std::string candidate = cat(folder.empty() ? "." : folder, '/', program);
    if (can_run(candidate)) return candidate;
  }
  throw ConfigError("can't run ", program, ": no folder of $PATH has it; give its path, as ./", program);
}

}  // namespace lockstep::launch
