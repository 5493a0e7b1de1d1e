// The commands ps, logs, dash and stop, on runs that other processes make.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/apps/commands/command.h"

namespace lockstep::apps {

struct PsOptions {
  std::vector<std::string> folders;  // runs, or folders of runs; empty: runs/
  bool all = false;                  // those that have ended, too
  bool json = false;

  static constexpr const char* kName = "ps";
  static constexpr config::Rest kRest = config::Rest::kOptions;
  static std::string help(const std::string& rows);
  void declare(config::OptionSet& options);
  void take(const config::Given& line);
};

struct LogsOptions {
  std::string run;
  bool follow = false;
  std::optional<int> rank;       // whose log; unset: the launcher's, of a run in the background
  std::optional<int64_t> lines;  // from those last lines on

  static constexpr const char* kName = "logs";
  static constexpr config::Rest kRest = config::Rest::kOptions;
  static std::string help(const std::string& rows);
  void declare(config::OptionSet& options);
  void take(const config::Given& line);
  static std::vector<config::Spelling> spellings();  // -f and -n
};

struct DashOptions {
  std::string run;
  std::string host = "127.0.0.1";
  std::optional<int> port;  // unset: a free one
  std::string out;          // a file for the page; empty: it is served

  static constexpr const char* kName = "dash";
  static constexpr config::Rest kRest = config::Rest::kOptions;
  static std::string help(const std::string& rows);
  void declare(config::OptionSet& options);
  void take(const config::Given& line);
};

struct StopOptions {
  std::string run;
  bool now = false;
  double timeout = 600;  // seconds

  static constexpr const char* kName = "stop";
  static constexpr config::Rest kRest = config::Rest::kOptions;
  static std::string help(const std::string& rows);
  void declare(config::OptionSet& options);
  void take(const config::Given& line);
};

}  // namespace lockstep::apps
