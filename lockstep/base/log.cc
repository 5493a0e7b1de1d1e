#include "lockstep/base/log.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"debug", "info", "warning", "error", "off"};
constexpr std::array<std::string_view, 4> kColors = {"\033[2m", "", "\033[33m", "\033[31m"};

}  // namespace

LogLevel parse_log_level(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<LogLevel>(i);
  }
  throw ConfigError("log level ", name, ": expected debug, info, warning, error or off");
}

bool wants_color(int descriptor) { return !env("NO_COLOR") && isatty(descriptor) == 1; }

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

Logger::Logger() : Logger(Options{}, [](const std::string& line) { write_all(STDERR_FILENO, line + '\n'); }) {}

Logger::Logger(Options options, Sink sink) : options_(std::move(options)), sink_(std::move(sink)) {}

Logger Logger::from_environment(std::string prefix) {
  const auto level = env("LOCKSTEP_LOG");
  if (env(kNamed)) prefix.clear();
  return Logger({.level = level ? parse_log_level(*level) : LogLevel::kInfo,
                 .prefix = std::move(prefix),
                 .color = wants_color(STDERR_FILENO)},
                [](const std::string& line) { write_all(STDERR_FILENO, line + '\n'); });
}

void Logger::emit(LogLevel level, const std::string& text) const {
  const auto index = static_cast<size_t>(level);
  std::string line = options_.prefix.empty() ? "" : '[' + options_.prefix + "] ";
  if (level != LogLevel::kInfo) line += cat(kNames[index], ": ");
  line += shown(text);
  if (options_.color && !kColors[index].empty()) line = cat(kColors[index], line, "\033[0m");
  sink_(line);
}

}  // namespace lockstep
