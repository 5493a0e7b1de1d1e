#include "lockstep/launch/detach.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/folder_entries.h"
#include "lockstep/base/log.h"
#include "lockstep/launch/signals.h"

namespace lockstep::launch {
namespace {

// What goes through the channel, a pair of sockets that keep messages apart. The background says kLog and the log's
// path, and waits for an answer, for it may remove the file again; at last it says kBegun and the foreground's text.
constexpr char kLog = 'l', kBegun = 'b', kSeen = 's';
constexpr size_t kMostBytes = 64UL * 1024;
constexpr int kLookMs = 50;

// The foreground, from the fork on.
class Foreground {
 public:
  Foreground(pid_t background, Descriptor channel)
      : pid_(background),
        channel_(std::move(channel)),
        end_(static_cast<int>(syscall(SYS_pidfd_open, background, 0))) {}

  int wait() {
    SignalWatch signals;
    for (;;) {
      std::array<pollfd, 3> states = {{{.fd = channel_.get(), .events = POLLIN, .revents = 0},
                                       {.fd = end_.get(), .events = POLLIN, .revents = 0},
                                       {.fd = signals.descriptor(), .events = POLLIN, .revents = 0}}};
      poll(states.data(), states.size(), kLookMs);
      while (const auto signal = signals.next()) {
        if (*signal == SIGHUP) return 128 + SIGHUP;  // the terminal is gone, and the background stays
        if (*signal == SIGTSTP) signals.stop_here();
        if (*signal == SIGINT || *signal == SIGTERM) kill(pid_, SIGTERM);
      }
      if (states[0].revents != 0 && listen()) return 0;
      show_log();
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) return end(status);
    }
  }

 private:
  // True once the work has begun.
  bool listen() {
    std::string message(kMostBytes, '\0');
    const ssize_t got = recv(channel_.get(), message.data(), message.size(), 0);
    if (got <= 0) {
      if (got == 0) channel_ = Descriptor();  // it is about to end
      return false;
    }
    const std::string text = message.substr(1, static_cast<size_t>(got) - 1);
    if (message[0] == kLog) open_log(text);
    if (message[0] != kBegun) return false;
    show_log();
    write_all(STDOUT_FILENO, text);
    return true;
  }

  void open_log(const std::string& path) {
    log_ = Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (log_) lseek(log_.get(), 0, SEEK_END);
    send(channel_.get(), &kSeen, 1, MSG_NOSIGNAL);
  }

  void show_log() {
    std::array<char, 4096> bytes{};
    for (ssize_t got = 0; log_ && (got = read(log_.get(), bytes.data(), bytes.size())) > 0;) {
      write_all(STDERR_FILENO, {bytes.data(), static_cast<size_t>(got)});
    }
  }

  // The last message and the last lines may have come just before the end.
  int end(int status) {
    if (channel_ && listen()) return 0;
    show_log();
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    write_all(STDERR_FILENO, cat("error: the launcher in the background (pid ", pid_, ") was killed by signal ",
                                 WTERMSIG(status), " before the run had begun\n"));
    return 128 + WTERMSIG(status);
  }

  pid_t pid_;
  Descriptor channel_, end_, log_;
};

bool has_threads() { return entries_of("/proc/self/task").size() > 1; }

}  // namespace

void Background::write_to(const std::string& log, const std::string& first) {
  const Descriptor file(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  const Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!file || !nothing) throw IoError(file ? "/dev/null" : log, ": can't be opened: ", errno_text(errno));
  write_all(file.get(), first);
  const std::string message = kLog + std::filesystem::absolute(log).string();
  char answer = 0;
  const bool told = send(foreground_.get(), message.data(), message.size(), MSG_NOSIGNAL) > 0;
  while (told && recv(foreground_.get(), &answer, 1, 0) < 0 && errno == EINTR) {
  }
  dup2(nothing.get(), STDIN_FILENO);
  dup2(file.get(), STDOUT_FILENO);
  dup2(file.get(), STDERR_FILENO);
}

void Background::begun(const std::string& text) {
  if (!foreground_) return;
  const std::string message = kBegun + text;
  send(foreground_.get(), message.data(), message.size(), MSG_NOSIGNAL);
  foreground_ = Descriptor();
}

int in_background(const std::function<int(Background&)>& work) {
  if (has_threads()) throw BugError("--detach: the program has started threads already");
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw IoError("can't make a pair of sockets: ", errno_text(errno));
  }
  Descriptor foreground(ends[0]), background(ends[1]);
  const auto of_children = signal(SIGCHLD, SIG_DFL);  // whoever ignores it knows no child's end
  const pid_t pid = fork();
  if (pid < 0) throw IoError("--detach: can't start a process: ", errno_text(errno));
  if (pid > 0) {
    foreground = Descriptor();
    return Foreground(pid, std::move(background)).wait();
  }
  background = Descriptor();
  signal(SIGCHLD, of_children);
  setsid();
  signal(SIGHUP, SIG_IGN);
  Background self(std::move(foreground));
  return work(self);
}

std::string background_text(const std::string& folder, int pid) {
  return cat("in the background: ", folder, ", pid ", pid, "\n  lockstep ps\n  lockstep logs -f ", folder,
             "\n  lockstep stop ", folder, '\n');
}

}  // namespace lockstep::launch
