// metrics.jsonl: one JSON object on each line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/shared_memory.h"
#include "lockstep/track/metric_sink.h"

namespace lockstep::track {

class JsonlSink final : public MetricSink {
 public:
  // Appends to `path`, and creates it if it is missing. Throws IoError.
  explicit JsonlSink(std::string path);
  void write(const Record& record) override;

 private:
  std::string path_;
  Descriptor file_;
};

// What copy_jsonl() has found.
struct Cut {
  std::vector<std::string> evaluated;  // the splits of the evaluations at the last step, of the lines that were kept
  int64_t dropped_to = 0;              // the last step whose lines were left out; 0: none were
};

// Writes the lines of `from` for steps up to `last` to `to`, which may be the same file; half a line that a killed
// process left is left out as well. Without a file `from` nothing is written. Throws IoError.
Cut copy_jsonl(const std::string& from, const std::string& to, int64_t last);

}  // namespace lockstep::track
