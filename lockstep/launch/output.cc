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
// A pipe that is writable has room for this much (PIPE_BUF); a terminal may have less.
constexpr size_t kPipeBytes = 4096;

// Another description of the same terminal, which does not block; none where the system does not give one.
Descriptor open_anew(int terminal) {
  return Descriptor(open(cat("/proc/self/fd/", terminal).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

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

Sink::Sink(int fd, bool leaves_out) : fd_(fd), is_terminal_(isatty(fd) == 1), leaves_out_(leaves_out) {
  if (is_terminal_) own_ = open_anew(fd);
}

void Sink::write(std::string_view bytes) {
  const bool full = pending_.size() > kMostWaiting || (left_out_ > 0 && waiting());
  if (!leaves_out_ || !full) return write_all(bytes);
  left_out_ += bytes.size();
}

void Sink::write_all(std::string_view bytes) {
  if (gone_) return;
  if (left_out_ > 0) pending_ += cat("\n[", human_bytes(left_out_), " of output left out here; the logs have it]\n");
  left_out_ = 0;
  pending_ += bytes;
  pump();
}

void Sink::pump() {
  for (pollfd state{.fd = fd(), .events = POLLOUT, .revents = 0}; waiting() && poll(&state, 1, 0) == 1;) {
    if (!write_some()) return;
  }
}

void Sink::flush() {
  if (left_out_ > 0) write_all("");  // says so
  for (pollfd state{.fd = fd(), .events = POLLOUT, .revents = 0}; waiting();) {
    if (poll(&state, 1, -1) == 1 && !write_some()) poll(nullptr, 0, kRestMs);
  }
}

// False if the descriptor takes nothing now.
bool Sink::write_some() {
  const ssize_t written = ::write(fd(), pending_.data(), std::min(pending_.size(), kPipeBytes));
  rests_ = written < 0 && errno == EAGAIN;
  if (written >= 0) {
    pending_.erase(0, static_cast<size_t>(written));
  } else if (errno != EINTR && errno != EAGAIN) {
    // Nobody reads any more (or the disk is full): no reason to end a run, whose logs go on.
    gone_ = true;
    lost_ = errno != EPIPE;
    pending_.clear();
  }
  return !rests_;
}

Terminal::Terminal(int out_fd, int err_fd) : Terminal(out_fd, err_fd, Options{}) {}

Terminal::Terminal(int out_fd, int err_fd, Options options)
    : options_(options),
      out_(out_fd, options.leaves_out),
      err_(err_fd, options.leaves_out),
      same_file_(same_file(out_fd, err_fd)) {}

void Terminal::raw(std::string_view bytes) {
  if (bytes.empty()) return;
  out_.write(options_.wraps && out_.is_terminal() ? wrapped(bytes) : std::string(bytes));
  mid_line_ = bytes.back() != '\n';
}

// Breaks the lines that begin in these bytes and end in them. What stands before a line's text, as the codes that rub
// out a progress bar, stays where it is.
std::string Terminal::wrapped(std::string_view bytes) const {
  const int columns = out_.columns();
  std::string out;
  bool begun = mid_line_;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = bytes.find('\n', at);
    const std::string_view line = bytes.substr(at, end == std::string_view::npos ? end : end - at);
    const size_t text = line.rfind("\033[K") != std::string_view::npos ? line.rfind("\033[K") + 3 : 0;
    const bool whole = end != std::string_view::npos && (!begun || text > 0);
    out += line.substr(0, text);
    out += whole ? wrap_line(line.substr(text), columns) : std::string(line.substr(text));
    if (end == std::string_view::npos) break;
    out += '\n';
    begun = false;
    at = end + 1;
  }
  return out;
}

// A progress bar is rubbed out, for its next turn draws all of it; in a file the line before is ended.
std::string Terminal::begin_of_line(Stream stream) {
  if (!mid_line_ || (stream == Stream::kErr && !same_file_)) return "";
  mid_line_ = false;
  return sink(stream).is_terminal() ? "\r\033[K" : "\n";
}

void Terminal::line(Stream stream, std::string_view text) {
  const std::string begin = begin_of_line(stream);
  Sink& to = sink(stream);
  to.write(cat(begin, options_.wraps ? wrap_line(text, to.columns()) : std::string(text), '\n'));
}

void Terminal::say(std::string_view text) {
  std::string whole = begin_of_line(Stream::kErr);
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    whole += wrap_line(text.substr(at, end - at), err_.columns()) + '\n';
    at = end + 1;
  }
  err_.write_all(whole);
}

bool LineFilter::takes(std::string_view line) const {
  return std::any_of(texts.begin(), texts.end(),
                     [line](const std::string& text) { return line.find(text) != std::string_view::npos; });
}

RankOutput::RankOutput(Options options, Terminal& terminal) : options_(std::move(options)), terminal_(terminal) {
  if (!options_.log_path.empty()) log_ = LogWriter::open(options_.log_path);
  for (size_t stream = 0; stream < files_.size(); ++stream) {
    const std::string& path = options_.streams[stream].path;
    if (!path.empty()) files_[stream] = LogWriter::open(path);
  }
}

const std::string& RankOutput::log_path() const {
  return options_.log_path.empty() ? options_.streams[static_cast<size_t>(Terminal::Stream::kErr)].path
                                   : options_.log_path;
}

bool RankOutput::is_hidden(Terminal::Stream stream) const {
  return options_.silent || options_.streams[static_cast<size_t>(stream)].hidden;
}

void RankOutput::feed(Terminal::Stream stream, std::string_view bytes) {
  if (is_raw(stream) && !is_hidden(stream)) terminal_.raw(bytes);
  splitters_[static_cast<size_t>(stream)].feed(bytes, [&](std::string_view line) { on_line(stream, line); });
}

void RankOutput::finish(Terminal::Stream stream) {
  splitters_[static_cast<size_t>(stream)].finish([&](std::string_view line) { on_line(stream, line); });
}

void RankOutput::note(std::string_view line) {
  const LogFile& errors = files_[static_cast<size_t>(Terminal::Stream::kErr)];
  if (log_) {
    terminal_.logs().write(log_, line);
  } else if (errors) {
    terminal_.logs().write(errors, line);
  }
}

void RankOutput::on_line(Terminal::Stream stream, std::string_view line) {
  const auto at = static_cast<size_t>(stream);
  const std::string text = without_escapes(line);
  const auto to = options_.out_to_err && !is_raw(stream) ? Terminal::Stream::kErr : stream;
  if (log_) terminal_.logs().write(log_, text);
  if (files_[at]) terminal_.logs().write(files_[at], line);
  const auto& filter = options_.streams[at].filter;
  if (filter && filter->takes(line)) terminal_.logs().write(filter->file, cat(options_.prefix, line));
  const bool seen = !is_hidden(stream) && (to == Terminal::Stream::kErr || terminal_.is_one_place());
  last_.push_back({text.substr(0, kLastLineBytes), seen});
  if (last_.size() > kLastLines) last_.pop_front();
  if (is_raw(stream) || is_hidden(stream)) return;
  terminal_.line(to, cat(options_.prefix, line));
}

}  // namespace lockstep::launch
