// The numbers of a run's metrics.jsonl as curves, read as the file grows.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/track/metric_sink.h"

namespace lockstep::dash {

// A number over a run's steps, which ascend.
struct Curve {
  std::vector<int64_t> steps = {};
  std::vector<double> values = {};
  int64_t not_finite = 0;  // values that were left out for that
};

// One thread.
class History {
 public:
  // The file may come later.
  explicit History(std::string metrics_jsonl) : path_(std::move(metrics_jsonl)) {}

  // Reads what has been written since, up to the last whole line. A file that has been cut back or made anew is read
  // from its beginning. A line that is no record is left out.
  void refresh();

  // By the record's kind and the number's name: "train/loss", "comm/overlap", of evaluations with their part of the
  // data: "eval/test/accuracy", "eval/test/dice_per_class.0".
  const std::map<std::string, Curve>& curves() const { return curves_; }

 private:
  void take(const track::Record& record);

  std::string path_, half_;  // the beginning of a line that is being written
  off_t read_ = 0;
  ino_t inode_ = 0;
  std::map<std::string, Curve> curves_;
};

}  // namespace lockstep::dash
