// Where two runs, or two checkpoints, went apart.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/compare.h"
#include "lockstep/train/inspection/metric_comparison.h"

namespace lockstep::train {

// An option of config.toml that two runs have differently; empty where one has it not.
struct OptionDifference {
  std::string name, a, b;
  bool bears_on_result = true;  // or it is one of where and on how many processes a run computes
};

struct ComparedCheckpoints {
  std::string a, b;                  // the two files
  std::vector<int64_t> equal_steps;  // of two runs: the steps before whose files have the same bytes
  checkpoint::Comparison found;
};

struct RunComparison {
  std::vector<OptionDifference> options;
  MetricComparison metrics;
  std::vector<TwoValues> results;                  // of final.json
  std::vector<std::string> only_one_has;           // "config.toml: only A has it"
  std::optional<ComparedCheckpoints> checkpoints;  // nothing: no two to compare

  bool equal() const;
};

// Whether a path is a run's folder, or another folder with checkpoints.
bool is_run(const std::string& path);

// Reads a checkpoint's file. Throws DataError, IoError.
using ReadCheckpoint = checkpoint::Value (*)(const std::string& path);

// Compares two checkpoints' files.
ComparedCheckpoints compare_checkpoints(const std::string& a, const std::string& b, ReadCheckpoint read);

// Compares two runs by their folders: options, metrics, results, and the checkpoints of the first step that both have
// and that differs, or else of the newest that both have. Runs without a common step are compared by their newest ones.
// Throws ConfigError for a folder that holds nothing of a run, DataError and IoError for what can't be read.
RunComparison compare_runs(const std::string& a, const std::string& b, ReadCheckpoint read);

// For people, with at most so many lines of tensors and values. A line each for what differs; what is equal is said
// too.
std::string text_of(const RunComparison& found, size_t most);
std::string text_of(const ComparedCheckpoints& found, size_t most);
// {"equal", "options", "metrics", "results", "only_one_has", "checkpoints"}; of two files {"equal", "checkpoints"}.
nlohmann::ordered_json json_of(const RunComparison& found, size_t most);
nlohmann::ordered_json json_of(const ComparedCheckpoints& found, size_t most);

}  // namespace lockstep::train
