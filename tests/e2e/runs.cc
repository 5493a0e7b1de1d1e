#include "runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <sstream>

#include "digits.h"

namespace lockstep::e2e {

const std::string& digits_folder() {
  static const TempDir folder;
  static const bool written = (write_digits(folder.path(), 100, 64), true);
  static_cast<void>(written);
  return folder.path();
}

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words train_words(const Words& more) {
  const Words base = {"train",        "mnist",
                      "--data",       digits_folder(),
                      "--lanes",      std::to_string(kLanes),
                      "--batch-size", std::to_string(kBatch)};
  const bool restarts = std::find(more.begin(), more.end(), "--max-restarts") != more.end();
  return base + (restarts ? Words{} : Words{"--max-restarts", "0"}) + more;
}

const std::string& finished_run(const Words& more) {
  static const TempDir folder;
  static std::map<Words, std::string> made;
  if (const auto known = made.find(more); known != made.end()) return known->second;
  const std::string run = folder / ("run-" + std::to_string(made.size()));
  const auto result = lockstep(train_words({"--steps", std::to_string(kSteps), "--nproc", "1", "--out", run}) + more);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return made.emplace(more, run).first->second;
}

void expect_one_line(const Result& result, int exit_code, const std::string& what) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find(what), std::string::npos) << what << " is not in: " << result.err;
}

nlohmann::json final_of(const std::string& run) {
  const auto value = nlohmann::json::parse(read_file(run + "/final.json"), nullptr, /*allow_exceptions=*/false);
  return value.is_object() ? value : nlohmann::json();
}

nlohmann::json outcome_of(const std::string& run) {
  const auto final = final_of(run);
  nlohmann::json outcome;
  for (const char* name : {"steps", "epochs", "loss", "train_loss", "metrics", "weights_sha256", "ema_sha256"}) {
    if (final.contains(name)) outcome[name] = final[name];
  }
  return outcome;
}

std::vector<nlohmann::json> records_of(const std::string& run, const std::string& kind) {
  std::vector<nlohmann::json> records;
  std::istringstream lines(read_file(run + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    auto record = nlohmann::json::parse(line);
    if (record.at("kind") == kind) records.push_back(std::move(record));
  }
  return records;
}

std::vector<int64_t> steps_logged(const std::string& run) {
  std::vector<int64_t> steps;
  for (const auto& record : records_of(run, "train")) steps.push_back(record.at("step"));
  return steps;
}

std::vector<int64_t> first_steps(int64_t count) {
  std::vector<int64_t> steps(static_cast<size_t>(count));
  std::iota(steps.begin(), steps.end(), 1);
  return steps;
}

}  // namespace lockstep::e2e
