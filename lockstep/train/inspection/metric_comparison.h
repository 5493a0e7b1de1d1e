// Where the histories of two runs part: the first record of their metrics.jsonl that differs.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::train {

// A named value of two runs; null where one has none.
struct TwoValues {
  std::string name;
  nlohmann::ordered_json a, b;
  bool operator==(const TwoValues&) const = default;
};

struct OnlyOnes {
  int64_t count = 0, first = 0, last = 0;  // the steps are 0 where there are none

  void add(int64_t step) {
    if (count++ == 0) first = step;
    last = step;
  }
};

struct MetricComparison {
  // Of the first record that both have and that differs; step 0: no record does.
  int64_t step = 0;
  std::string kind;               // "train", or "eval" and its split
  std::vector<TwoValues> fields;  // those that differ
  // Records that both have, and how many of these differ.
  int64_t records = 0, differing = 0;
  // Records that only one has, such as the steps of a longer run.
  OnlyOnes only_a, only_b;

  bool equal() const { return differing == 0 && only_a.count == 0 && only_b.count == 0; }
};

// Compares what a run's training decides: not times, speeds and how ranks communicated, which no two runs have alike.
// Files of any length are read line by line; what is no JSON, as half a last line, is passed over. A file that is not
// there has no records. Throws IoError.
MetricComparison compare_metrics(const std::string& a, const std::string& b);

// Returns the fields of two results (final.json) that differ, but for those that depend on the machine.
std::vector<TwoValues> compare_results(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b);

}  // namespace lockstep::train
