// The output of the ranks, on its way to the terminal and to their log files.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

// Splits a stream of bytes into lines. Text before a carriage return is dropped, as a terminal would overwrite it. A
// line longer than kMostLineBytes comes in pieces, so that memory stays bounded.
class LineSplitter {
 public:
  static constexpr size_t kMostLineBytes = 256 * 1024;
  using OnLine = std::function<void(std::string_view line)>;  // without its newline

  void feed(std::string_view bytes, const OnLine& on_line);
  void finish(const OnLine& on_line);  // passes on the text after the last newline, if there is any

 private:
  std::string line_;
  bool returned_ = false;  // the last byte was a carriage return
};

// One of the launcher's own output streams. write() never blocks: bytes that a slow reader has not taken yet wait here.
// While clogged() is true, the caller should read no more output of the ranks and call pump() instead.
class Sink {
 public:
  explicit Sink(int fd);  // not owned

  void write(std::string_view bytes);
  bool waiting() const { return !pending_.empty(); }
  bool clogged() const { return pending_.size() > 64 * 1024; }
  void pump();   // writes what the descriptor takes now, without blocking
  void flush();  // writes all that waits, and blocks until the reader has taken it or is gone
  int fd() const { return fd_; }
  bool is_terminal() const { return is_terminal_; }
  bool lost() const { return lost_; }  // whether bytes could not be written although the reader was there

 private:
  void write_some();

  int fd_;
  bool is_terminal_;
  bool gone_ = false;
  bool lost_ = false;
  std::string pending_;
};

// Standard output and standard error of the launcher, kept from writing into each other's lines.
class Terminal {
 public:
  enum class Stream { kOut, kErr };

  Terminal(int out_fd, int err_fd);

  void raw(std::string_view bytes);                 // writes bytes to standard output, unchanged
  void line(Stream stream, std::string_view text);  // writes a whole line; `text` has no newline
  Sink& sink(Stream stream) { return stream == Stream::kOut ? out_ : err_; }

 private:
  Sink out_, err_;
  bool same_file_;         // both end in the same file or terminal
  bool mid_line_ = false;  // whether the last raw byte was no newline
};

// The output of one rank: its standard output and error, its log file and the last lines of both.
class RankOutput {
 public:
  struct Options {
    std::string prefix;       // "[rank 1] ", before each line on the terminal
    bool raw_out = false;     // whether standard output is forwarded unchanged
    bool out_to_err = false;  // whether standard output goes to the launcher's standard error
    bool silent = false;      // whether nothing goes to the terminal
    std::string log_path;     // the log file, which is appended to; empty: no log
  };

  // Throws IoError if the log can't be opened.
  RankOutput(Options options, Terminal& terminal);

  void feed(Terminal::Stream stream, std::string_view bytes);
  void finish(Terminal::Stream stream);
  void note(std::string_view line);  // writes a line of the launcher's own to the log only
  const std::deque<std::string>& last_lines() const { return last_; }
  const std::string& log_path() const { return options_.log_path; }

 private:
  bool is_raw(Terminal::Stream stream) const { return stream == Terminal::Stream::kOut && options_.raw_out; }
  void on_line(Terminal::Stream stream, std::string_view line);

  Options options_;
  Terminal& terminal_;
  Descriptor log_;
  std::array<LineSplitter, 2> splitters_;  // by stream
  std::deque<std::string> last_;
};

}  // namespace lockstep::launch
