// metrics.csv: the records of training steps and evaluations as rows of one table, for spreadsheets.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/shared_memory.h"
#include "lockstep/track/metric_sink.h"

namespace lockstep::track {

// The table is made from metrics.jsonl, and made anew, behind its readers' backs, when a record has a column that it
// lacks. So it holds all of a run's history, whenever it was begun. Other kinds of records are left out. One thread.
class CsvSink final : public MetricSink {
 public:
  // Writes `path` anew with the records of `jsonl`, which may be missing. Throws IoError.
  CsvSink(std::string path, std::string jsonl);
  // The record is the last one of `jsonl`.
  void write(const Record& record) override;

 private:
  void rewrite();

  std::string path_, jsonl_;
  std::vector<std::string> columns_;
  Descriptor file_;
};

}  // namespace lockstep::track
