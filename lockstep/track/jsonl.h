// metrics.jsonl: one JSON object on each line.
#pragma once

#include <cstdint>
#include <string>

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

// Cuts the file back to the lines of steps up to `last`; half a line that a killed process left goes as well. Returns
// whether an evaluation at step `last` remains. A missing file is fine. Throws IoError.
bool cut_jsonl(const std::string& path, int64_t last);

}  // namespace lockstep::track
