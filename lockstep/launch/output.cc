#include "lockstep/launch/output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"

namespace lockstep::launch {
namespace {

constexpr size_t kLastLines = 5;
constexpr size_t kLastLineBytes = 400;
constexpr size_t kPipeBytes = 4096;  // poll's "writable" promises room for this much (PIPE_BUF)

bool same_file(int one, int other) {
  struct stat a {
  }, b{};
  return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

void LineSplitter::feed(std::string_view bytes, const OnLine& on_line) {
  for (const char c : bytes) {
    if (c == '\n') {
      on_line(line_);
      line_.clear();
    } else if (c != '\r') {
      if (returned_ || line_.size() == kMostLineBytes) {
        if (!returned_) on_line(line_);
        line_.clear();
      }
      line_ += c;
    }
    returned_ = c == '\r';
  }
}

void LineSplitter::finish(const OnLine& on_line) {
  if (!line_.empty()) on_line(line_);
  line_.clear();
  returned_ = false;
}

Sink::Sink(int fd) : fd_(fd), is_terminal_(isatty(fd) == 1) {}

void Sink::write(std::string_view bytes) {
  if (gone_) return;
  pending_ += bytes;
  pump();
}

void Sink::pump() {
  for (pollfd state{.fd = fd_, .events = POLLOUT, .revents = 0}; waiting() && poll(&state, 1, 0) == 1;) write_some();
}

void Sink::flush() {
  for (pollfd state{.fd = fd_, .events = POLLOUT, .revents = 0}; waiting();) {
    if (poll(&state, 1, -1) == 1) write_some();
  }
}

void Sink::write_some() {
  const ssize_t written = ::write(fd_, pending_.data(), std::min(pending_.size(), kPipeBytes));
  if (written >= 0) {
    pending_.erase(0, static_cast<size_t>(written));
  } else if (errno != EINTR && errno != EAGAIN) {
    // Nobody reads any more (or the disk is full): no reason to end a run, whose logs go on.
    gone_ = true;
    lost_ = errno != EPIPE;
    pending_.clear();
  }
}

Terminal::Terminal(int out_fd, int err_fd) : out_(out_fd), err_(err_fd), same_file_(same_file(out_fd, err_fd)) {}

void Terminal::raw(std::string_view bytes) {
  if (bytes.empty()) return;
  out_.write(bytes);
  mid_line_ = bytes.back() != '\n';
}

void Terminal::line(Stream stream, std::string_view text) {
  std::string whole;
  if (mid_line_ && (stream == Stream::kOut || same_file_)) {
    // A progress bar is rubbed out, for its next turn draws all of it; in a file the line before is ended.
    whole = sink(stream).is_terminal() ? "\r\033[K" : "\n";
    mid_line_ = false;
  }
  whole += text;
  whole += '\n';
  sink(stream).write(whole);
}

RankOutput::RankOutput(Options options, Terminal& terminal) : options_(std::move(options)), terminal_(terminal) {
  if (options_.log_path.empty()) return;
  log_ = Descriptor(open(options_.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!log_) throw IoError(options_.log_path, ": can't be written: ", errno_text(errno), "; choose another folder");
}

void RankOutput::feed(Terminal::Stream stream, std::string_view bytes) {
  if (is_raw(stream) && !options_.silent) terminal_.raw(bytes);
  splitters_[static_cast<size_t>(stream)].feed(bytes, [&](std::string_view line) { on_line(stream, line); });
}

void RankOutput::finish(Terminal::Stream stream) {
  splitters_[static_cast<size_t>(stream)].finish([&](std::string_view line) { on_line(stream, line); });
}

void RankOutput::note(std::string_view line) {
  if (log_) write_all(log_.get(), cat(line, '\n'));
}

void RankOutput::on_line(Terminal::Stream stream, std::string_view line) {
  note(line);
  last_.emplace_back(line.substr(0, kLastLineBytes));
  if (last_.size() > kLastLines) last_.pop_front();
  if (is_raw(stream) || options_.silent) return;
  terminal_.line(options_.out_to_err ? Terminal::Stream::kErr : stream, cat(options_.prefix, line));
}

}  // namespace lockstep::launch
