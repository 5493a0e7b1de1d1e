// The command convert.
#pragma once

#include <optional>
#include <string>

#include "lockstep/apps/commands/command.h"

namespace lockstep::apps {

struct ConvertCommand {
  std::string in, out;  // of `out` the suffix decides the format
  bool weights = false, average = false, ignore_unknown = false;
  std::string strip_prefix;
  std::string optimizer, names;  // files of Paddle's
  std::optional<double> beta1, beta2;

  bool to_safetensors() const { return out.ends_with(".safetensors"); }
  bool to_paddle() const { return out.ends_with(".pdparams"); }
  bool to_paddles_optimizer() const { return out.ends_with(".pdopt"); }
  bool to_pt() const { return out.ends_with(".pt") || out.ends_with(".pth"); }

  static constexpr const char* kName = "convert";
  static constexpr config::Rest kRest = config::Rest::kOptions;
  static std::string help(const std::string& rows);
  void declare(config::OptionSet& options);
  void take(const config::Given& line);
};

}  // namespace lockstep::apps
