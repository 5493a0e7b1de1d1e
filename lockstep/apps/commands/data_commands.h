// The commands pack, data and draw.
#pragma once

#include <string>

#include "lockstep/apps/commands/command.h"
#include "lockstep/datasets/options/draw_options.h"
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

struct DrawCommand {
  std::string kind;  // as it was typed
  datasets::DrawOptions draw;
  bool json = false;

  static constexpr const char* kName = "draw";
  static constexpr config::Rest kRest = config::Rest::kOptions;
  static std::string help(const std::string& rows);
  void declare(config::OptionSet& options);
  void take(const config::Given& line);
};

}  // namespace lockstep::apps
