// metrics.jsonl: one JSON object a line.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/base/shared_memory.h"
#include "lockstep/track/metric_sink.h"

namespace lockstep::track {

class JsonlSink final : public MetricSink {
 public:
  // Appends to `path`, which is made if it is not there. Throws IoError.
  explicit JsonlSink(std::string path);
  void write(const Record& record) override;

 private:
  std::string path_;
  Descriptor file_;
};

// Cuts the file back to what was known at step `last`: lines of later steps go, and so does half a line that a killed
// process left. Returns whether an evaluation of step `last` is among what stays. A file that is not there is fine.
// Throws IoError.
bool cut_jsonl(const std::string& path, int64_t last);

}  // namespace lockstep::track
