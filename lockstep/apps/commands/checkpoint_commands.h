// The commands verify and diff.
#pragma once

#include <string>
#include <vector>

#include "lockstep/apps/commands/command.h"

namespace lockstep::apps {

struct VerifyOptions {
  std::vector<std::string> paths;  // never empty; arguments() leaves them out
  bool json = false;

  static constexpr const char* kName = "verify";
  static constexpr config::Rest kRest = config::Rest::kOptions;
  static std::string help(const std::string& rows);
  void declare(config::OptionSet& options);
  void take(const config::Given& line);
};

struct DiffOptions {
  std::string a, b;
  int most = 0;  // differing tensors and values that are listed; 0: 20 for people, all for scripts
  bool json = false;

  static constexpr const char* kName = "diff";
  static constexpr config::Rest kRest = config::Rest::kOptions;
  static std::string help(const std::string& rows);
  void declare(config::OptionSet& options);
  void take(const config::Given& line);

  size_t listed() const;
};

// The exit code of `diff` where it has found a difference, as diff(1)'s.
constexpr int kExitDiffers = 1;

}  // namespace lockstep::apps
