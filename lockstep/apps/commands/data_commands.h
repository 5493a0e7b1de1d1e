// The commands pack and data.
#pragma once

#include <string>

#include "lockstep/apps/commands/command.h"
#include "lockstep/datasets/options/pack_options.h"
#include "lockstep/datasets/options/survey_options.h"

namespace lockstep::apps {

struct PackCommand {
  datasets::PackOptions pack;
  bool json = false;

  static constexpr const char* kName = "pack";
  static constexpr config::Rest kRest = config::Rest::kOptions;
  static std::string help(const std::string& rows);
  void declare(config::OptionSet& options);
  void take(const config::Given& line);
};

struct DataCommand {
  datasets::SurveyOptions survey;
  bool json = false;

  static constexpr const char* kName = "data";
  static constexpr config::Rest kRest = config::Rest::kOptions;
  static std::string help(const std::string& rows);
  void declare(config::OptionSet& options);
  void take(const config::Given& line);
};

}  // namespace lockstep::apps
