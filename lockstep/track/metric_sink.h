// Where a run's numbers go while it runs: one interface, one implementation a format.
#pragma once

#include <nlohmann/json.hpp>

namespace lockstep::track {

// One line of the run's history: {"kind": "train" | "eval", "step": …, "epoch": …, "loss": …, …}; steps count from 1.
using Record = nlohmann::ordered_json;

class MetricSink {
 public:
  virtual ~MetricSink() = default;
  virtual void write(const Record& record) = 0;  // throws IoError
};

}  // namespace lockstep::track
