// metrics.jsonl: one JSON object on each line.
#pragma once

#include <cstdint>
#include <functional>
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

// The lines of a file for steps up to a last one, and what was found.
struct Cut {
  std::string text;                    // these lines
  bool is_there = true;                // the file
  bool whole = true;                   // the text is all of it
  std::vector<std::string> evaluated;  // the splits of the evaluations at the last step, of the lines that were kept
  int64_t dropped_to = 0;              // the last step whose lines were left out; 0: none were
};

// Reads a file up to the lines of step `last`; half a line that a killed process left is left out as well. Throws
// IoError.
Cut cut_jsonl(const std::string& path, int64_t last);

// Calls `take` for each whole record of a file, in order; a file that is missing has none. Throws IoError.
void for_each_record(const std::string& path, const std::function<void(const Record& record)>& take);

}  // namespace lockstep::track
