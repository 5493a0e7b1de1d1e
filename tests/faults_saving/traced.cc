#include "traced.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/shared_memory.h"

namespace lockstep::faults {
namespace {

namespace fs = std::filesystem;
using Kind = DiskCall::Kind;
using Registers = user_regs_struct;

constexpr std::string_view kNote = "note:";
constexpr const char* kNames[] = {"open",   "write",    "fsync",       "rename", "symlink",
                                  "unlink", "truncate", "make folder", "note"};

void require(bool done, const char* what) {
  if (!done) throw IoError("a child can't be traced: ", what, ": ", errno_text(errno));
}

// The child's memory, descriptors and paths, while it stands still.
class Child {
 public:
  Child(pid_t pid, std::string folder) : pid_(pid), folder_(fs::canonical(folder).string()) {}

  pid_t pid() const { return pid_; }

  std::string bytes(uint64_t address, size_t count) const {
    std::string out(count, '\0');
    const iovec here{out.data(), count};
    const iovec there{reinterpret_cast<void*>(address), count};
    const ssize_t read = process_vm_readv(pid_, &here, 1, &there, 1, 0);
    out.resize(read < 0 ? 0 : static_cast<size_t>(read));
    return out;
  }
  // A path may end just before memory that can't be read.
  std::string text(uint64_t address) const {
    constexpr size_t kPage = 4096;
    std::string out;
    for (size_t end = std::string::npos; out.size() < PATH_MAX && end == std::string::npos;) {
      const uint64_t at = address + out.size();
      const std::string part = bytes(at, kPage - at % kPage);
      if (part.empty()) break;
      out += part;
      end = out.find('\0');
    }
    return out.substr(0, out.find('\0'));
  }
  // The name below the watched folder; nothing for other places.
  std::optional<std::string> name(const std::string& path) const {
    if (path == folder_) return "";
    if (!path.starts_with(folder_ + "/")) return std::nullopt;
    return path.substr(folder_.size() + 1);
  }
  std::optional<std::string> name_at(int64_t folder, uint64_t address) const {
    std::string path = text(address);
    if (!path.starts_with('/'))
      path = link(static_cast<int>(folder) == AT_FDCWD ? "cwd" : cat("fd/", folder)) + '/' + path;
    return name(fs::path(path).lexically_normal().string());
  }
  std::optional<std::string> name_of(uint64_t descriptor) const { return name(link(cat("fd/", descriptor))); }
  uint64_t position(uint64_t descriptor) const {
    std::ifstream info(cat("/proc/", pid_, "/fdinfo/", descriptor));
    std::string word;
    uint64_t position = 0;
    info >> word >> position;
    return position;
  }
  std::string gathered(uint64_t address, uint64_t count) const {
    std::string out;
    for (uint64_t i = 0; i < count; ++i) {
      const std::string part = bytes(address + i * sizeof(iovec), sizeof(iovec));
      const auto* const piece = reinterpret_cast<const iovec*>(part.data());
      out += bytes(reinterpret_cast<uint64_t>(piece->iov_base), piece->iov_len);
    }
    return out;
  }

 private:
  std::string link(const std::string& entry) const {
    std::array<char, PATH_MAX> path{};
    const ssize_t size = readlink(cat("/proc/", pid_, '/', entry).c_str(), path.data(), path.size());
    return {path.data(), size < 0 ? 0 : static_cast<size_t>(size)};
  }

  pid_t pid_;
  std::string folder_;
};

using Found = std::optional<DiskCall>;

Found if_watched(Kind kind, std::optional<std::string> name, std::string other = "") {
  if (!name) return std::nullopt;
  return DiskCall{.kind = kind, .name = *std::move(name), .other = std::move(other)};
}

Found opened(const Child& child, int64_t folder, uint64_t path, uint64_t flags) {
  auto call = if_watched(Kind::kOpen, child.name_at(folder, path));
  if (!call || (flags & O_ACCMODE) == O_RDONLY) return std::nullopt;
  call->creates = (flags & O_CREAT) != 0;
  call->truncates = (flags & O_TRUNC) != 0;
  return call;
}

Found written(const Child& child, uint64_t descriptor, std::string data, uint64_t offset) {
  auto call = if_watched(Kind::kWrite, child.name_of(descriptor));
  if (!call) return call;
  call->data = std::move(data);
  call->offset = offset;
  return call;
}

Found resized(std::optional<std::string> name, uint64_t size) {
  auto call = if_watched(Kind::kTruncate, std::move(name));
  if (call) call->offset = size;
  return call;
}

// What the child is about to do, if it concerns the folder's files. Reading is no concern.
Found call_of(const Child& child, const Registers& at) {
  const uint64_t a = at.rdi, b = at.rsi, c = at.rdx, d = at.r10;
  const auto here = static_cast<int64_t>(AT_FDCWD);
  switch (at.orig_rax) {
    case SYS_open:
      return opened(child, here, a, b);
    case SYS_creat:
      return opened(child, here, a, O_WRONLY | O_CREAT | O_TRUNC);
    case SYS_openat:
      return opened(child, static_cast<int>(a), b, c);
    case SYS_write:
      return child.name_of(a) ? written(child, a, child.bytes(b, c), child.position(a)) : std::nullopt;
    case SYS_pwrite64:
      return child.name_of(a) ? written(child, a, child.bytes(b, c), d) : std::nullopt;
    case SYS_writev:
      return child.name_of(a) ? written(child, a, child.gathered(b, c), child.position(a)) : std::nullopt;
    case SYS_pwritev:
    case SYS_pwritev2:
      return child.name_of(a) ? written(child, a, child.gathered(b, c), d) : std::nullopt;
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_syncfs:
      return if_watched(Kind::kSync, child.name_of(a));
    case SYS_rename:
      return if_watched(Kind::kRename, child.name_at(here, a), child.name_at(here, b).value_or("?"));
    case SYS_renameat:
    case SYS_renameat2:
      return if_watched(Kind::kRename, child.name_at(static_cast<int>(a), b),
                        child.name_at(static_cast<int>(c), d).value_or("?"));
    case SYS_symlink:
      return if_watched(Kind::kLink, child.name_at(here, b), child.text(a));
    case SYS_symlinkat:
      return if_watched(Kind::kLink, child.name_at(static_cast<int>(b), c), child.text(a));
    case SYS_unlink:
    case SYS_rmdir:
      return if_watched(Kind::kUnlink, child.name_at(here, a));
    case SYS_unlinkat:
      return if_watched(Kind::kUnlink, child.name_at(static_cast<int>(a), b));
    case SYS_truncate:
      return resized(child.name_at(here, a), b);
    case SYS_ftruncate:
      return resized(child.name_of(a), b);
    case SYS_fallocate:
      return (b & FALLOC_FL_KEEP_SIZE) != 0 ? std::nullopt : resized(child.name_of(a), c + d);
    case SYS_mkdir:
      return if_watched(Kind::kMakeFolder, child.name_at(here, a));
    case SYS_mkdirat:
      return if_watched(Kind::kMakeFolder, child.name_at(static_cast<int>(a), b));
    case SYS_access: {
      const std::string text = child.text(a);
      if (!text.starts_with(kNote)) return std::nullopt;
      return DiskCall{.kind = Kind::kNote, .name = text.substr(kNote.size())};
    }
    // Other ways to write or to make a name would go unseen.
    case SYS_link:
    case SYS_linkat:
    case SYS_copy_file_range:
    case SYS_sendfile:
    case SYS_io_uring_setup:
      throw BugError("traced.cc does not know the system call ", at.orig_rax);
    default:
      return std::nullopt;
  }
}

// Follows a child and its threads from stop to stop.
class Tracer {
 public:
  Tracer(const Child& child, const std::function<Decision(size_t, const DiskCall&)>& decide)
      : child_(child), decide_(decide) {}

  // The child stands still with this status.
  Traced run(int status) {
    for (pid_t thread = child_.pid(); thread > 0; thread = waitpid(-1, &status, __WALL)) {
      if (WIFEXITED(status) || WIFSIGNALED(status)) {
        if (thread != child_.pid()) continue;
        traced_.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        break;
      }
      on_stop(thread, status);
    }
    return std::move(traced_);
  }

 private:
  struct UnderWay {
    DiskCall call;
    Decision decision;
  };

  void on_stop(pid_t thread, int status) {
    int signal = 0;
    if (WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80)) {
      on_call(thread);
    } else if (WIFSTOPPED(status) && WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
      signal = WSTOPSIG(status);
    }
    ptrace(PTRACE_SYSCALL, thread, nullptr, signal);  // fails for a child that was killed
  }

  void on_call(pid_t thread) {
    Registers registers{};
    if (ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return;  // it was killed
    if (!inside_[thread]) {
      inside_[thread] = true;
      begin(thread, registers);
    } else {
      inside_[thread] = false;
      end(thread, registers);
    }
  }

  void begin(pid_t thread, Registers& registers) {
    Found call = call_of(child_, registers);
    if (!call) return;
    Decision decision;
    if (call->kind != Kind::kNote) decision = decide_(number_++, *call);
    if (decision.fail_with != 0) {
      registers.orig_rax = static_cast<uint64_t>(-1);  // no such call: nothing happens
      ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
    }
    under_way_[thread] = UnderWay{*std::move(call), decision};
  }

  void end(pid_t thread, Registers& registers) {
    const auto found = under_way_.find(thread);
    if (found == under_way_.end()) return;
    auto [call, decision] = std::move(found->second);
    under_way_.erase(found);
    if (decision.fail_with != 0) {
      registers.rax = static_cast<uint64_t>(-decision.fail_with);
      ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
    }
    call.result = static_cast<int64_t>(registers.rax);
    if (call.kind == Kind::kWrite && call.result >= 0) call.data.resize(static_cast<size_t>(call.result));
    traced_.calls.push_back(std::move(call));
    if (decision.then_kill) kill(child_.pid(), SIGKILL);
  }

  const Child& child_;
  const std::function<Decision(size_t, const DiskCall&)>& decide_;
  std::map<pid_t, bool> inside_;
  std::map<pid_t, UnderWay> under_way_;
  size_t number_ = 0;
  Traced traced_;
};

[[noreturn]] void be_traced(const std::function<std::string()>& body, int pipe) {
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
  raise(SIGSTOP);
  std::string said;
  try {
    said = body();
  } catch (const std::exception& error) {
    said = cat("thrown: ", error.what());
  }
  write_all(pipe, said);
  _exit(0);
}

size_t own_threads() {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

}  // namespace

std::string text_of(const DiskCall& call) {
  return cat(kNames[static_cast<size_t>(call.kind)], ' ', call.name, call.other.empty() ? "" : " -> ", call.other);
}

bool can_trace() {
  const pid_t pid = fork();
  if (pid == 0) _exit(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1);
  int status = 0;
  return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void note(const std::string& text) { syscall(SYS_access, cat(kNote, text).c_str(), F_OK); }

Traced run_traced(const std::string& folder, const std::function<std::string()>& body,
                  const std::function<Decision(size_t number, const DiskCall& call)>& decide) {
  // A thread that was joined is there for a moment yet.
  for (int tries = 0; own_threads() != 1 && tries < 500; ++tries) usleep(10'000);
  if (own_threads() != 1) throw BugError("a process that forks has ", own_threads(), " threads");
  std::array<int, 2> ends{};
  require(pipe2(ends.data(), O_CLOEXEC) == 0, "pipe");
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const pid_t pid = fork();
  require(pid >= 0, "fork");
  if (pid == 0) be_traced(body, write_end.get());
  write_end = Descriptor();
  int status = 0;
  waitpid(pid, &status, __WALL);
  require(WIFSTOPPED(status), "ptrace");
  constexpr auto kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
  require(ptrace(PTRACE_SETOPTIONS, pid, nullptr, kOptions) == 0, "its options");
  const Child child(pid, folder);
  Traced traced;
  try {
    traced = Tracer(child, decide).run(status);
  } catch (...) {
    kill(pid, SIGKILL);
    waitpid(pid, &status, __WALL);
    throw;
  }
  std::array<char, 4096> part{};
  for (ssize_t count = 0; (count = read(read_end.get(), part.data(), part.size())) > 0;) {
    traced.said.append(part.data(), static_cast<size_t>(count));
  }
  return traced;
}

}  // namespace lockstep::faults
