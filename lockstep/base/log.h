// Log lines such as "[rank 1] warning: …" on standard error. LOCKSTEP_LOG=debug|info|warning|error|off sets the level.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "lockstep/base/text.h"

namespace lockstep {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// The level called `name`, "debug" … "off". Throws ConfigError that lists the names for any other.
LogLevel parse_log_level(std::string_view name);

// Whether text for this descriptor may be coloured: it is a terminal and NO_COLOR (no-color.org) is not set.
bool wants_color(int descriptor);

// Writes whole lines to a sink, one at a time. Any thread may call. A program makes one logger and passes it on.
class Logger {
 public:
  using Sink = std::function<void(const std::string& line)>;

  struct Options {
    LogLevel level = LogLevel::kInfo;
    std::string prefix;  // such as "rank 1"; empty: none
    bool color = false;
  };

  // Writes levels from info on to standard error, uncoloured.
  Logger();
  // Writes to `sink`, which gets each line without its newline.
  Logger(Options options, Sink sink);

  // Writes to standard error, with the level of LOCKSTEP_LOG, and coloured if wants_color(2). Without the prefix where
  // kNamed says that our launcher names the rank in every line.
  static Logger from_environment(std::string prefix);
  static constexpr const char* kNamed = "LOCKSTEP_LINES_NAMED";

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

// Writes all of `text` to a descriptor and goes on after interruptions by signals. False if the descriptor fails.
bool write_all(int descriptor, std::string_view text);

}  // namespace lockstep
