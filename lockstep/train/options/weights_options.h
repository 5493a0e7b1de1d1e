// Which weights of which file a command takes: train's, eval's, predict's and export's options.
#pragma once

#include <array>
#include <string>

#include "lockstep/config/option_set.h"
#include "lockstep/config/words.h"

namespace lockstep::train {

// Whether the weights' average is meant: `auto` is where the file has one in an evaluation, and not in a training.
enum class TakesAverage { kAuto, kOn, kOff };
constexpr auto words(TakesAverage) {
  return std::to_array<config::Word<TakesAverage>>(
      {{TakesAverage::kAuto, "auto"}, {TakesAverage::kOn, "on"}, {TakesAverage::kOff, "off"}});
}

struct WeightsOptions {
  std::string load;             // a checkpoint, or for an evaluation the folder of a run; empty: fresh weights
  std::string strip_prefix;     // the names in it that begin with it are taken, without it
  bool ignore_unknown = false;  // leaves out what it holds of unknown classes
  TakesAverage average = TakesAverage::kAuto;
  bool partly = false;  // of the weights what fits

  // For an evaluation. `what` says what the checkpoint is for.
  void declare(config::OptionSet& options, const std::string& what);
  // For a training that starts from them.
  void declare_start(config::OptionSet& options);
};

}  // namespace lockstep::train
