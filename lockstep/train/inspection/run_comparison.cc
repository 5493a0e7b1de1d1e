#include "lockstep/train/inspection/run_comparison.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "lockstep/base/error.h"
#include "lockstep/base/file_content.h"
#include "lockstep/base/path_kind.h"
#include "lockstep/checkpoint/formats/safetensors_index.h"
#include "lockstep/checkpoint/names/step_files.h"
#include "lockstep/config/toml_file.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/train/options/train_options.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

// A run's checkpoints/, or a folder that holds checkpoints itself.
std::string checkpoints_in(const std::string& folder) {
  const std::string own = RunFiles{folder}.checkpoints();
  return is_folder(own) ? own : folder;
}

bool bears_on_result(const std::string& option) {
  TrainOptions options;
  config::OptionSet rows;
  options.declare(rows);
  const config::Option* row = rows.find(option);
  // "parent" and a recipe's own options are not among them.
  return option != "parent" && (row == nullptr || row->effect != config::Effect::kNone);
}

std::vector<OptionDifference> compare_options(const std::string& a, const std::string& b) {
  std::map<std::string, OptionDifference> options;
  for (const auto& [name, value] : config::read_any_toml(a)) options[name].a = value;
  for (const auto& [name, value] : config::read_any_toml(b)) options[name].b = value;
  std::vector<OptionDifference> differing;
  for (auto& [name, option] : options) {
    if (option.a == option.b) continue;
    option.name = name;
    option.bears_on_result = bears_on_result(name);
    differing.push_back(std::move(option));
  }
  return differing;
}

nlohmann::ordered_json results_of(const std::string& path) {
  auto results = nlohmann::ordered_json::parse(file_content(path).value_or(""), nullptr, /*allow_exceptions=*/false);
  if (!results.is_object()) throw DataError(path, ": not the results of a run: no JSON object");
  return results;
}

bool have_same_bytes(const std::string& a, const std::string& b) {
  constexpr size_t kBlock = 1 << 20;
  std::error_code error;
  if (fs::file_size(a, error) != fs::file_size(b, error)) return false;
  std::ifstream left(a, std::ios::binary), right(b, std::ios::binary);
  std::string one(kBlock, '\0'), other(kBlock, '\0');
  while (left && right) {
    left.read(one.data(), kBlock);
    right.read(other.data(), kBlock);
    const auto count = static_cast<size_t>(left.gcount());
    if (left.gcount() != right.gcount() || one.compare(0, count, other, 0, count) != 0) return false;
  }
  return left.eof() && right.eof();
}

std::optional<std::string> newest_in(const std::string& folder) {
  if (auto newest = newest_checkpoint(folder)) return newest;
  const auto steps = checkpoint::step_files_in(folder);
  return steps.empty() ? checkpoint::find_safetensors(folder) : std::optional(steps.back().path);
}

// The bytes of a file depend on the training's state alone, so most steps need not be read as checkpoints.
std::optional<ComparedCheckpoints> compare_steps(const std::string& a, const std::string& b, ReadCheckpoint read) {
  std::map<int64_t, std::string> of_b;
  for (const auto& each : checkpoint::step_files_in(checkpoints_in(b))) of_b[each.step] = each.path;
  std::vector<int64_t> equal;
  std::optional<ComparedCheckpoints> compared;
  for (const auto& each : checkpoint::step_files_in(checkpoints_in(a))) {
    const auto other = of_b.find(each.step);
    if (other == of_b.end()) continue;
    if (have_same_bytes(each.path, other->second)) {
      compared = ComparedCheckpoints{.a = each.path, .b = other->second, .equal_steps = {}, .found = {}};
    } else {
      compared = compare_checkpoints(each.path, other->second, read);
      if (!compared->found.differences.empty()) break;
    }
    equal.push_back(each.step);
  }
  // Where no step differs the newest states may, which need not be of one step.
  const auto left = newest_in(a), right = newest_in(b);
  const bool are_newer = left && right && !(compared && compared->a == *left && compared->b == *right);
  if (are_newer && (!compared || compared->found.differences.empty())) {
    compared = compare_checkpoints(*left, *right, read);
  }
  if (compared) compared->equal_steps = std::move(equal);
  return compared;
}

}  // namespace

bool RunComparison::equal() const {
  const auto bears = [](const OptionDifference& option) { return option.bears_on_result; };
  return std::none_of(options.begin(), options.end(), bears) && metrics.equal() && results.empty() &&
         only_one_has.empty() && (!checkpoints || checkpoints->found.differences.empty());
}

bool is_run(const std::string& path) { return is_folder(path); }

ComparedCheckpoints compare_checkpoints(const std::string& a, const std::string& b, ReadCheckpoint read) {
  return {.a = a, .b = b, .equal_steps = {}, .found = checkpoint::compare(read(a), read(b))};
}

RunComparison compare_runs(const std::string& a, const std::string& b, ReadCheckpoint read) {
  const RunFiles left{a}, right{b};
  RunComparison found;
  const auto both_have = [&](const std::string& of_a, const std::string& of_b) {
    const bool in_a = is_file(of_a), in_b = is_file(of_b);
    if (in_a != in_b)
      found.only_one_has.push_back(cat(fs::path(of_a).filename().string(), ": only ", in_a ? 'A' : 'B', " has it"));
    return in_a && in_b;
  };
  if (both_have(left.config(), right.config())) found.options = compare_options(left.config(), right.config());
  if (both_have(left.metrics(), right.metrics())) found.metrics = compare_metrics(left.metrics(), right.metrics());
  if (both_have(left.final_json(), right.final_json())) {
    found.results = compare_results(results_of(left.final_json()), results_of(right.final_json()));
  }
  found.checkpoints = compare_steps(a, b, read);
  const bool in_a = newest_in(a).has_value(), in_b = newest_in(b).has_value();
  if (in_a != in_b) found.only_one_has.push_back(cat("checkpoints: only ", in_a ? 'A' : 'B', " has any"));
  for (const auto& [run, files, has_checkpoint] : {std::tuple(a, left, in_a), std::tuple(b, right, in_b)}) {
    if (has_checkpoint || is_file(files.config()) || is_file(files.metrics()) || is_file(files.final_json())) continue;
    throw ConfigError("diff ", run, ": neither a run's folder nor one with checkpoints; name a file");
  }
  return found;
}

}  // namespace lockstep::train
