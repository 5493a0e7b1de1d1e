// The commands inspect, launch and doctor.
#pragma once

#include <string>
#include <vector>

#include "lockstep/apps/commands/command.h"
#include "lockstep/parallel/options/parallel_options.h"

namespace lockstep::apps {

struct InspectOptions {
  std::string file;
  std::string only;  // which leaves (checkpoint/contents/leaves.h); empty: all
  bool ignore_unknown = false;
  bool stats = false, json = false;

  static constexpr const char* kName = "inspect";
  static constexpr config::Rest kRest = config::Rest::kOptions;
  static std::string help(const std::string& rows);
  void declare(config::OptionSet& options);
  void take(const config::Given& line);
};

// The command launch, which runs any program under the environment that torchrun sets.
struct LaunchOptions {
  parallel::ProcessOptions processes;  // threads: OMP_NUM_THREADS, where it is not set
  std::string log_dir;                 // empty: no log files
  std::vector<std::string> program;    // with its arguments; never empty

  static constexpr const char* kName = "launch";
  static constexpr config::Rest kRest = config::Rest::kProgram;
  static std::string help(const std::string& rows);
  void declare(config::OptionSet& options);
  void take(const config::Given& line);
};

struct DoctorOptions {
  bool json = false;

  static constexpr const char* kName = "doctor";
  static constexpr config::Rest kRest = config::Rest::kOptions;
  static std::string help(const std::string& rows);
  void declare(config::OptionSet& options);
  void take(const config::Given& line);
};

// Declares --json, the same for every command that prints results.
void declare_json(config::OptionSet& options, bool* json);

}  // namespace lockstep::apps
