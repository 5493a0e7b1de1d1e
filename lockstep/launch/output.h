// The output of the ranks, on its way to the terminal and to their log files.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/shared_memory.h"
#include "lockstep/base/terminal.h"
#include "lockstep/launch/log_writer.h"

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
// While holds_up() is true, the caller should read no more output of the ranks and call pump() instead. A sink that
// leaves out never holds up: while its reader stands still (Ctrl-S, a pager), what comes beyond kMostWaiting bytes goes
// nowhere, and a line says how much that was.
class Sink {
 public:
  static constexpr size_t kMostWaiting = 64 * 1024;

  explicit Sink(int fd, bool leaves_out = false);  // not owned

  void write(std::string_view bytes);
  void write_all(std::string_view bytes);  // leaves nothing out
  bool waiting() const { return !pending_.empty(); }
  // Whether the descriptor last took nothing although it was writable, as a terminal with little room does. It is then
  // to be pumped after kRestMs, not waited for.
  bool rests() const { return rests_ && waiting(); }
  static constexpr int kRestMs = 20;
  bool holds_up() const { return !leaves_out_ && pending_.size() > kMostWaiting; }
  void pump();   // writes what the descriptor takes now, without blocking
  void flush();  // writes all that waits, and blocks until the reader has taken it or is gone
  int fd() const { return own_ ? own_.get() : fd_; }
  bool is_terminal() const { return is_terminal_; }
  int columns() const { return terminal_columns(fd_); }  // 0: no terminal
  bool lost() const { return lost_; }  // whether bytes could not be written although the reader was there

 private:
  bool write_some();

  int fd_;
  Descriptor own_;  // of a terminal: it does not block, and leaves those who share the other one alone
  bool is_terminal_;
  bool leaves_out_;
  size_t left_out_ = 0;  // bytes since the last that were taken
  bool rests_ = false;
  bool gone_ = false;
  bool lost_ = false;
  std::string pending_;
};

// Standard output and standard error of the launcher, kept from writing into each other's lines.
class Terminal {
 public:
  enum class Stream { kOut, kErr };

  struct Options {
    bool wraps = false;       // the ranks' lines are broken between words where a terminal is too narrow
    bool leaves_out = false;  // a reader that stands still misses output (Sink)
  };

  Terminal(int out_fd, int err_fd);
  Terminal(int out_fd, int err_fd, Options options);

  void raw(std::string_view bytes);                 // writes bytes to standard output, unchanged but for `wraps`
  void line(Stream stream, std::string_view text);  // writes a whole line; `text` has no newline
  void say(std::string_view text);                  // writes the launcher's own lines to standard error
  bool is_one_place() const { return same_file_; }  // whether both streams end in the same place
  LogWriter& logs() { return logs_; }
  Sink& sink(Stream stream) { return stream == Stream::kOut ? out_ : err_; }

 private:
  std::string begin_of_line(Stream stream);
  std::string wrapped(std::string_view bytes) const;

  Options options_;
  Sink out_, err_;
  LogWriter logs_;
  bool same_file_;         // both end in the same file or terminal
  bool mid_line_ = false;  // whether the last raw byte was no newline
};

// A file that gets those lines which have one of the texts in them, of several ranks.
struct LineFilter {
  std::vector<std::string> texts;
  LogFile file;
  bool takes(std::string_view line) const;
};

// The output of one rank: its standard output and error, its log file and the last lines of both. The log has neither
// what was overwritten (a progress bar's redraws) nor escape codes.
class RankOutput {
 public:
  // One of the last lines, and whether it is where the launcher's own lines go, so that a reader has seen it.
  struct LastLine {
    std::string text;
    bool seen = false;
    bool operator==(const LastLine&) const = default;
  };

  // One of the two streams, where more is asked for than the terminal and the log of both.
  struct StreamOptions {
    bool hidden = false;                            // whether nothing of it goes to the terminal
    std::string path = {};                          // a file of its own, escape codes and all; empty: none
    std::shared_ptr<const LineFilter> filter = {};  // another file for some of its lines
  };

  struct Options {
    std::string prefix;                         // "[rank 1] ", before each line on the terminal
    bool raw_out = false;                       // whether standard output is forwarded unchanged
    bool out_to_err = false;                    // whether standard output goes to the launcher's standard error
    bool silent = false;                        // whether nothing goes to the terminal
    std::string log_path;                       // the log file, which is appended to; empty: no log
    std::array<StreamOptions, 2> streams = {};  // by stream
  };

  // Throws IoError if the log can't be opened.
  RankOutput(Options options, Terminal& terminal);

  void feed(Terminal::Stream stream, std::string_view bytes);
  void finish(Terminal::Stream stream);
  void note(std::string_view line);  // writes a line of the launcher's own to the log only
  const std::deque<LastLine>& last_lines() const { return last_; }
  // The log, or the file of standard error where there is one of that; empty: neither.
  const std::string& log_path() const;

 private:
  bool is_hidden(Terminal::Stream stream) const;
  bool is_raw(Terminal::Stream stream) const { return stream == Terminal::Stream::kOut && options_.raw_out; }
  void on_line(Terminal::Stream stream, std::string_view line);

  Options options_;
  Terminal& terminal_;
  LogFile log_;
  std::array<LogFile, 2> files_;           // by stream
  std::array<LineSplitter, 2> splitters_;  // by stream
  std::deque<LastLine> last_;
};

}  // namespace lockstep::launch
