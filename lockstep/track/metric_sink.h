// A destination for the metrics of a run: one interface, and one implementation for each format.
#pragma once

#include <nlohmann/json.hpp>

namespace lockstep::track {

// One line of a run's history: {"kind": "train" | "eval", "step": …, "epoch": …, "loss": …, …}. Steps count from 1.
using Record = nlohmann::ordered_json;

class MetricSink {
 public:
  virtual ~MetricSink() = default;
  virtual void write(const Record& record) = 0;  // throws IoError
};

}  // namespace lockstep::track
