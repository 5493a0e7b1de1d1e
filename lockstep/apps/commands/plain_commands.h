// The commands inspect and doctor.
#pragma once

#include <string>
#include <vector>

#include "lockstep/apps/commands/command.h"

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

struct DoctorOptions {
  bool json = false;
  bool env = false;  // what this process's environment says of a rank's place, and nothing else

  static constexpr const char* kName = "doctor";
  static constexpr config::Rest kRest = config::Rest::kOptions;
  static std::string help(const std::string& rows);
  void declare(config::OptionSet& options);
  void take(const config::Given& line);
};

// Declares --json, the same for every command that prints results.
void declare_json(config::OptionSet& options, bool* json);

}  // namespace lockstep::apps
