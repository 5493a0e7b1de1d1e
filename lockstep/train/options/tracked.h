// What a run's numbers are written to besides metrics.jsonl, as --track says.
#pragma once

#include <string>

namespace lockstep::train {

struct Tracked {
  bool csv = false;
  bool tensorboard = false;
  bool operator==(const Tracked&) const = default;
};

// Reads "csv,tensorboard", or "none". Throws ConfigError.
Tracked read_tracked(const std::string& name, const std::string& text);
std::string write_tracked(const Tracked& tracked);

}  // namespace lockstep::train
