#include "lockstep/launch/runs/run_facts.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/folder_entries.h"
#include "lockstep/config/toml_file.h"
#include "lockstep/launch/runs/file_end.h"
#include "lockstep/launch/runs_root.h"
#include "lockstep/train/folder/run_files.h"

namespace lockstep::launch {
namespace {

using nlohmann::json;

int64_t written_ns(const std::string& path) {
  struct stat there {};
  if (stat(path.c_str(), &there) != 0) return 0;
  return there.st_mtim.tv_sec * 1'000'000'000 + there.st_mtim.tv_nsec;
}

int64_t newest_in(const std::string& folder) {
  int64_t newest = 0;
  for (const auto& path : entries_of(folder)) newest = std::max(newest, written_ns(path.string()));
  return newest;
}

// A number of that name, or nothing.
std::optional<double> number_in(const json& record, const char* name) {
  const auto found = record.find(name);
  if (found == record.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

int64_t whole_in(const json& record, const char* name) {
  const auto found = record.find(name);
  return found != record.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

// The records of steps at the end of the text, the last first.
std::vector<json> last_records(std::string_view text, size_t most) {
  std::vector<json> records;
  const auto lines = whole_lines(text);
  for (auto line = lines.rbegin(); line != lines.rend() && records.size() < most; ++line) {
    json record = json::parse(*line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object() && record.value("kind", json()) == "train") records.push_back(std::move(record));
  }
  return records;
}

// Returns the number that stands at `at`, and moves there behind it.
std::optional<int64_t> take_number(std::string_view text, size_t& at) {
  int64_t number = 0;
  const auto read = std::from_chars(text.data() + at, text.data() + text.size(), number);
  if (read.ec != std::errc()) return std::nullopt;
  at = static_cast<size_t>(read.ptr - text.data());
  return number;
}

int64_t as_number(const std::string& text) {
  size_t at = 0;
  return take_number(text, at).value_or(0);
}

// The few options of a run's file that are shown. The file may be in the making.
void read_config(const std::string& path, RunFacts& facts) {
  try {
    for (const auto& [name, value] : config::read_any_toml(path)) {
      if (name == "recipe") facts.recipe = value;
      if (name == "nproc") facts.ranks = static_cast<int>(as_number(value.substr(value.find(':') + 1)));  // of MIN:MAX
      if (name == "epochs") facts.epochs = as_number(value);
      if (name == "steps") facts.steps = as_number(value);
    }
  } catch (const Error&) {
    return;
  }
}

}  // namespace

std::string_view word_of(RunState state) {
  switch (state) {
    case RunState::kUnderWay:
      return "under way";
    case RunState::kFinished:
      return "finished";
    case RunState::kStopped:
      return "stopped";
    case RunState::kFailed:
      return "failed";
    case RunState::kKilled:
      return "killed";
    case RunState::kNotBegun:
      return "not begun";
  }
  return "?";
}

RunState end_of_run(const RunTimes& times) {
  const int64_t newest = std::max({times.metrics, times.results, times.interrupted, times.error});
  if (newest == 0) return RunState::kNotBegun;
  if (times.results == newest) return RunState::kFinished;
  if (times.interrupted == newest) return RunState::kStopped;
  return times.error == newest ? RunState::kFailed : RunState::kKilled;
}

LastSteps last_steps(std::string_view text) {
  constexpr size_t kMost = 20;
  const std::vector<json> records = last_records(text, kMost);
  LastSteps last;
  if (records.empty()) return last;
  last.step = whole_in(records[0], "step");
  last.epoch = whole_in(records[0], "epoch");
  last.loss = number_in(records[0], "loss");
  double samples = 0, seconds = 0;
  for (const json& record : records) {
    const double took = number_in(record, "seconds").value_or(0);
    samples += number_in(record, "samples_per_second").value_or(0) * took;
    seconds += took;
  }
  if (seconds > 0) {
    last.samples_per_second = samples / seconds;
    last.seconds_a_step = seconds / static_cast<double>(records.size());
  }
  return last;
}

int64_t total_steps(std::string_view log) {
  constexpr std::string_view kStep = "  step ";
  for (size_t at = log.rfind(kStep); at != std::string_view::npos; at = log.rfind(kStep, at - 1)) {
    size_t number = at + kStep.size();
    if (take_number(log, number) && number < log.size() && log[number] == '/') {
      if (const auto total = take_number(log, ++number); total && number < log.size()) return *total;
    }
    if (at == 0) break;
  }
  return 0;
}

// The lock's file is written at each start.
RunFacts facts_of_run(const std::string& folder) {
  constexpr size_t kBytes = 64UL * 1024;
  const train::RunFiles files{folder};
  RunFacts facts{.folder = folder, .owner = train::owner_of(folder)};
  read_config(files.config(), facts);
  facts.last = last_steps(end_of(files.metrics(), kBytes));
  if (const int64_t total = total_steps(end_of(files.rank_log(0), kBytes)); total > 0) facts.steps = total;
  facts.since = written_ns(files.lock()) / 1'000'000'000;
  facts.state = facts.owner.held ? RunState::kUnderWay
                                 : end_of_run({.metrics = written_ns(files.metrics()),
                                               .results = written_ns(files.final_json()),
                                               .interrupted = written_ns(files.interrupted()),
                                               .error = newest_in(files.errors())});
  return facts;
}

}  // namespace lockstep::launch
