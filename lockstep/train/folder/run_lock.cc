#include "lockstep/train/folder/run_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string_view>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/folder_entries.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/log.h"
#include "lockstep/base/process_state.h"
#include "lockstep/train/folder/run_files.h"

namespace lockstep::train {
namespace {

constexpr int kPollMs = 10;
constexpr double kTellSeconds = 3;
constexpr int kMostLooks = 5;  // in a row at a lock that is free: owner_of() takes it for a moment

// Whether the descriptor is of the file that the path leads to now.
bool is_at(int descriptor, const std::string& path) {
  struct stat ours {};
  struct stat there {};
  return fstat(descriptor, &ours) == 0 && stat(path.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
         ours.st_ino == there.st_ino;
}

// A text that the file holds. Its first line is the owner's; then each command has the line "job …", the line "line …"
// and, if it has ended, the line "ended". The line "end" is the last.
//
// A new text is written beside the one that counts, before it where there is room and else behind it, and what lies
// behind the new one is cut off: so a full disk, or a writer that is killed, leaves the one that counts whole. The last
// whole text counts. Files of earlier versions have one text, perhaps without its end.
struct Text {
  std::string owner;  // "pid 812 on node3"; "" where it is not written
  std::vector<JobCommand> commands = {};
  bool whole = false;         // it has its end
  size_t begin = 0, end = 0;  // bytes of the file
};

constexpr std::string_view kPid = "pid ", kJob = "job ", kLine = "line ", kEnded = "ended", kEnd = "end";
constexpr int kMostTries = 10;
constexpr size_t kMostBytes = 256 << 10;  // of a text: a job of torchrun has a name for each node

// Once more where the owner has cut the file off meanwhile.
std::string read_all(int file) {
  for (int tries = 0;; ++tries) {
    struct stat there {};
    fstat(file, &there);
    std::string text(std::min(static_cast<size_t>(there.st_size), 3 * kMostBytes), '\0');
    const ssize_t got = pread(file, text.data(), text.size(), 0);
    if (got < 0) return "";
    if (static_cast<size_t>(got) == text.size()) return text;
    text.resize(static_cast<size_t>(got));
    if (tries == kMostTries) return text;  // a network's file system that knows an old size
  }
}

void take_line(Text& text, const std::string& line) {
  text.whole = line == kEnd;
  if (line.starts_with(kJob)) text.commands.push_back({.job = line.substr(kJob.size()), .line = {}});
  if (text.commands.empty()) return;
  if (line.starts_with(kLine)) text.commands.back().line = line.substr(kLine.size());
  if (line == kEnded) text.commands.back().ended = true;
}

Text read_text(int file) {
  std::vector<Text> texts;
  std::istringstream all(read_all(file));
  size_t end = 0;
  for (std::string line; std::getline(all, line) && !all.eof();) {  // a line without its end does not count
    const size_t begin = std::exchange(end, end + line.size() + 1);
    if (line.starts_with(kPid)) texts.push_back({.owner = line, .begin = begin});
    if (texts.empty() || texts.back().whole) continue;
    take_line(texts.back(), line);
    texts.back().end = end;
  }
  if (texts.empty()) return {};
  const auto last = std::find_if(texts.rbegin(), texts.rend(), [](const Text& text) { return text.whole; });
  return last == texts.rend() ? texts.front() : *last;
}

// Reads "pid 812 on node3".
LockOwner read_owner(const std::string& text) {
  LockOwner owner;
  std::istringstream words(text);
  std::string pid_word, on;
  if (!(words >> pid_word >> owner.pid >> on >> owner.host)) return {};
  return owner;
}

// Whether the owner was a process of this host that is no more. It was killed then, and its workers with it.
bool has_ended(const std::string& text) {
  const LockOwner owner = read_owner(text);
  if (owner.pid == 0 || owner.host != host_name()) return false;
  return process_ended(owner.pid);
}

void write_text(int file, const std::string& path, const std::vector<JobCommand>& commands) {
  std::string text = cat(kPid, getpid(), " on ", host_name(), '\n');
  const std::string end = cat(kEnd, '\n');
  for (const JobCommand& each : commands) {
    const std::string lines = cat(kJob, each.job, '\n', kLine, each.line, '\n', each.ended ? cat(kEnded, '\n') : "");
    if (text.size() + lines.size() + end.size() > kMostBytes) break;  // the oldest
    text += lines;
  }
  text += end;
  const Text old = read_text(file);
  const auto place = static_cast<off_t>(text.size() <= old.begin ? 0 : old.end);
  const bool written = lseek(file, place, SEEK_SET) == place && write_all(file, text);
  if (!written || ftruncate(file, place + static_cast<off_t>(text.size())) != 0) {
    throw IoError(path, ": can't be written: ", errno_text(errno), "; choose another folder with --out");
  }
}

bool has_no_locks(int error) { return error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS || error == EINVAL; }

// " (pid 812 on node3)"
std::string in_brackets(const std::string& owner) {
  const char* const fate = has_ended(owner) ? " has ended, but processes that it started have not" : "";
  return owner.empty() ? "" : cat(" (", owner, fate, ')');
}

[[noreturn]] void refuse(const std::string& option, const std::string& owner) {
  throw ConfigError(option, ": a run is under way there", in_brackets(owner),
                    "; wait for its end or stop it, or choose another folder with --out");
}

}  // namespace

LockOwner owner_of(const std::string& folder) {
  const Descriptor file(open(RunFiles{folder}.lock().c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  const bool is_free = flock(file.get(), LOCK_SH | LOCK_NB) == 0;
  if (is_free) return {};
  const bool unknown = has_no_locks(errno);
  LockOwner owner = read_owner(read_text(file.get()).owner);
  owner.held = !unknown || (owner.host == host_name() && has_lock_open(owner.pid, folder).value_or(false));
  return owner.held ? owner : LockOwner{};
}

std::optional<bool> has_lock_open(int pid, const std::string& folder) {
  struct stat lock {};
  if (stat(RunFiles{folder}.lock().c_str(), &lock) != 0) return false;
  std::error_code error;
  const auto descriptors = entries_of(cat("/proc/", pid, "/fd"), error);
  if (error == std::errc::permission_denied) return std::nullopt;
  return std::ranges::any_of(descriptors, [&lock](const std::filesystem::path& each) {
    struct stat open_file {};
    const bool known = stat(each.c_str(), &open_file) == 0;
    return known && open_file.st_dev == lock.st_dev && open_file.st_ino == lock.st_ino;
  });
}

RunLock RunLock::take(const std::string& folder, const std::string& option) { return take(folder, option, Means{}); }

RunLock RunLock::take(const std::string& folder, const std::string& option, const Means& means) {
  const std::string path = RunFiles{folder}.lock();
  const Deadline patience(means.patience), with_owner(means.patience_with_owner);
  Stopwatch untold;
  for (int looks = 0;; ++looks) {
    RunLock lock;
    lock.file_ = Descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!lock.file_) {
      throw IoError(folder, ": can't write here: ", errno_text(errno), "; choose another folder with --out");
    }
    if (means.lock_file(lock.descriptor(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) {
        const std::string owner = read_text(lock.descriptor()).owner;
        const bool waits = !with_owner.passed() || (has_ended(owner) && !patience.passed());
        if (looks >= kMostLooks && !waits) {
          if (means.patience_with_owner.count() == 0) refuse(option, owner);
          throw CommError(option, ": an earlier start of this run has not ended", in_brackets(owner), "; stop it");
        }
        if (means.stop_asked()) {
          throw Error(kExitStoppedOnRequest,
                      cat(option, ": asked to stop before an earlier start of this run has ended", in_brackets(owner)));
        }
        if (untold.seconds() > kTellSeconds) {
          means.say(cat(option, ": waiting for an earlier start of this run to end", in_brackets(owner)));
          untold.restart();
        }
        poll(nullptr, 0, kPollMs);
        continue;
      }
      if (!has_no_locks(errno)) throw IoError(path, ": can't be locked: ", errno_text(errno));
      lock.warning_ = cat(folder, ": this file system has no locks (", errno_text(errno),
                          "), so nothing keeps a second run out of the folder");
    }
    // A run that never began removes its folder, and with it perhaps the file that was opened here.
    if (!is_at(lock.descriptor(), path)) continue;
    lock.path_ = path;
    lock.set_commands(read_text(lock.descriptor()).commands);
    return lock;
  }
}

void RunLock::set_commands(std::vector<JobCommand> commands) {
  commands_ = std::move(commands);
  write_text(descriptor(), path_, commands_);
}

void RunLock::mark_ended() {
  if (commands_.empty() || commands_.front().ended) return;
  commands_.front().ended = true;
  write_text(descriptor(), path_, commands_);
}

std::vector<JobCommand> RunLock::commands_of(const std::string& folder) {
  const Descriptor file(open(RunFiles{folder}.lock().c_str(), O_RDONLY | O_CLOEXEC));
  return file ? read_text(file.get()).commands : std::vector<JobCommand>{};
}

std::optional<RunLock> RunLock::inherited(const std::string& folder) {
  const auto descriptor = env_int(kRunLockVariable, 0, std::numeric_limits<int>::max());
  if (!descriptor) return std::nullopt;
  const int file = static_cast<int>(*descriptor);
  if (!is_at(file, RunFiles{folder}.lock())) {
    throw ConfigError(kRunLockVariable, "=", *descriptor, ": not the lock of ", folder,
                      "; the variable is for lockstep's own workers, unset it");
  }
  fcntl(file, F_SETFD, FD_CLOEXEC);
  RunLock lock;
  lock.file_ = Descriptor(file);
  return lock;
}

}  // namespace lockstep::train
