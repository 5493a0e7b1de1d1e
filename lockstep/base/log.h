// Log lines: "[rank 1] warning: …" on standard error, by level; LOCKSTEP_LOG=debug|info|warning|error|off chooses.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "lockstep/base/text.h"

namespace lockstep {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// "debug" … "off"; throws ConfigError that lists them for anything else.
LogLevel parse_log_level(std::string_view name);

// Whether text for this descriptor may be coloured: a terminal, and NO_COLOR (no-color.org) not set.
bool wants_color(int descriptor);

// Writes whole lines to a sink, one at a time; any thread may call. A program makes one and passes it on.
class Logger {
 public:
  using Sink = std::function<void(const std::string& line)>;

  struct Options {
    LogLevel level = LogLevel::kInfo;
    std::string prefix;  // "rank 1", or nothing
    bool color = false;
  };

  Logger();                            // info and above to standard error, uncoloured
  Logger(Options options, Sink sink);  // a line without its newline

  // Level from LOCKSTEP_LOG, colour as wants_color(2), to standard error.
  static Logger from_environment(std::string prefix);

  template <typename... Parts>
  void debug(const Parts&... parts) const {
    write(LogLevel::kDebug, parts...);
  }
  template <typename... Parts>
  void info(const Parts&... parts) const {
    write(LogLevel::kInfo, parts...);
  }
  template <typename... Parts>
  void warning(const Parts&... parts) const {
    write(LogLevel::kWarning, parts...);
  }
  template <typename... Parts>
  void error(const Parts&... parts) const {
    write(LogLevel::kError, parts...);
  }

 private:
  template <typename... Parts>
  void write(LogLevel level, const Parts&... parts) const {
    if (level >= options_.level) emit(level, cat(parts...));
  }
  void emit(LogLevel level, const std::string& text) const;

  Options options_;
  Sink sink_;
};

// Writes all of `text` to a descriptor, through interruptions; false if it can't.
bool write_all(int descriptor, std::string_view text);

}  // namespace lockstep
