// The command convert.
#pragma once

#include <string>

#include "lockstep/apps/commands/command.h"

namespace lockstep::apps {

struct ConvertCommand {
  std::string in, out;  // of `out` the suffix decides the format
  bool weights = false, ignore_unknown = false;
  std::string strip_prefix;

  bool to_safetensors() const { return out.ends_with(".safetensors"); }
  bool to_paddle() const { return out.ends_with(".pdparams"); }

  static constexpr const char* kName = "convert";
  static constexpr config::Rest kRest = config::Rest::kOptions;
  static std::string help(const std::string& rows);
  void declare(config::OptionSet& options);
  void take(const config::Given& line);
};

}  // namespace lockstep::apps
