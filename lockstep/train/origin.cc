#include "lockstep/train/origin.h"

#include <torch/version.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/version.h"
#include "lockstep/config/toml_file.h"
#include "lockstep/parallel/model_check.h"
#include "lockstep/train/options/option_file.h"

namespace lockstep::train {
namespace {

using config::Effect;
using config::Option;

const std::string* find(const config::Record& record, const std::string& name) {
  const auto found =
      std::find_if(record.begin(), record.end(), [&name](const auto& option) { return option.name == name; });
  return found == record.end() ? nullptr : &found->value;
}

// "--lanes 4", "recipe mnist", "no --validation".
std::string spelled(const Option& row, const std::string& value) {
  if (row.form == config::OptionForm::kWord) return cat(row.name, ' ', value);
  return value.empty() ? "no --" + row.name : cat("--", row.name, ' ', value);
}

bool is_flag(const Option& row) { return row.form == config::OptionForm::kFlag; }

void check_row(const Option& row, const Origin& run, const std::string& then, const std::string& file) {
  const std::string& now = run.option(row.name);
  if (row.effect != Effect::kIdentity || now == then) return;
  throw ConfigError(file, ": it was trained with ", spelled(row, then), ", this run has ", spelled(row, now),
                    "; use the same, or start a new run with --load");
}

template <typename Shown>
std::string line_of(const config::OptionSet& rows, const Shown& shown) {
  std::string text;
  for (const Option& row : rows.rows()) {
    const std::string value = row.get().value_or("");
    if (shown(row, value)) text += cat(text.empty() ? "" : " ", spelled(row, value));
  }
  return text;
}

}  // namespace

const std::string& Origin::option(const std::string& name) const {
  const std::string* value = find(options, name);
  if (value == nullptr) throw DataError("a checkpoint of a run does not say its --", name);
  return *value;
}

std::string Origin::network() const {
  std::string text = option("recipe");
  for (const char* name : {"arch", "width", "bilinear"}) {
    const std::string* const value = find(options, name);
    if (value != nullptr && !value->empty() && *value != "false") text += cat(" --", name, ' ', *value);
  }
  return text;
}

int64_t Origin::first_epoch() const {
  return find(options, "first-epoch") == nullptr ? 0 : number("first-epoch") - 1;  // older runs began with the first
}

int64_t Origin::number(const std::string& name) const {
  return config::read_whole(name, option(name), 0, std::numeric_limits<int64_t>::max());
}

data::HoldOutRequest Origin::held_out() const {
  const std::string* const files = find(options, "hold-out");  // older runs had no such option
  const std::string* const percent = find(options, "validation");
  const bool has_percent = percent != nullptr && !percent->empty();
  return {.percent = has_percent ? config::read_number("validation", *percent, 0, 100) : 0,
          .files = files == nullptr ? "" : *files};
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += cat(text.empty() ? "" : "×", size);
  return text;
}

void throw_other_data(const std::string& file, const std::string& difference) {
  throw ConfigError(file, ": it was trained on other data: ", difference,
                    "; give the same --data, or start a new run with --load");
}

RunRows::RunRows(const TrainOptions& options, RecipeDescription& recipe) {
  options_.declare(rows_);  // with the defaults
  recipe.declare(own_);
  options_ = options;
}

config::Record RunRows::record() const {
  config::Record record = rows_.record();
  for (auto& option : own_.record()) record.push_back(std::move(option));
  return record;
}

void RunRows::check_ranks(comm::Communicator& comm) const {
  // No bits depend on them.
  static const std::set<std::string> kOfCollectives = {"global-batch-size",
                                                       "steps",
                                                       "save-every",
                                                       "snapshot-every",
                                                       "save-on",
                                                       "background-saves",
                                                       "shard-optimizer",
                                                       "servers",
                                                       "skip-bad",
                                                       "on-nan",
                                                       "ledger",
                                                       "detect-anomaly",
                                                       "load",
                                                       "data",
                                                       "load-partly",
                                                       "load-average"};
  std::vector<std::string> lines;
  size_t of_collectives = 0;
  for (const config::OptionSet* rows : {&rows_, &own_}) {
    for (const Option& row : rows->rows()) {
      std::string value = row.get().value_or("");
      const bool is_place = row.name == "load" || row.name == "data";  // which may be the rank's own
      if (is_place && !value.empty()) value = "PATH";
      const bool may_be_chosen = row.name == "threads" || row.name == "lanes";
      if (may_be_chosen && value == "0") value = "";
      const bool of_collective = kOfCollectives.contains(row.name);
      of_collectives += of_collective ? 1 : 0;
      if (row.effect == Effect::kNone && !of_collective) continue;
      if (row.name == "device") value = value.substr(0, value.find(':'));  // ranks may have GPUs of their own
      lines.push_back(spelled(row, value));
    }
  }
  if (of_collectives != kOfCollectives.size()) throw BugError("an option that collectives depend on has another name");
  parallel::check_same_lines("the ranks have different options", lines, comm);
}

std::string RunRows::to_toml() const { return parent_line(options_.parent) + config::to_toml({&rows_, &own_}); }

void RunRows::check(const Origin& run, const Origin& checkpoint, const std::string& file) const {
  for (const Option& row : rows_.rows()) {
    if (row.effect == Effect::kNone) continue;
    const std::string* then = find(checkpoint.options, row.name);
    check_row(row, run, then == nullptr ? row.default_value.value_or("") : *then, file);
  }
  for (const Option& row : own_.rows()) {
    if (row.effect == Effect::kNone) continue;
    const std::string* then = find(checkpoint.options, row.name);
    // The recipe had no such option then.
    check_row(row, run, then != nullptr ? *then : is_flag(row) ? "false" : "", file);
  }
  const auto check_fact = [&file](const char* what, const auto& now, const auto& then) {
    if (now == then) return;
    throw ConfigError(file, ": it was trained with ", what, ' ', then, ", this run has ", now,
                      "; give the same --data, or start a new run with --load");
  };
  check_fact("samples of", shape_text(run.sample_shape), shape_text(checkpoint.sample_shape));
  check_fact("training samples", run.train_samples, checkpoint.train_samples);
  for (const Part part : kParts) {
    if (differs(checkpoint.data, run.data, part)) throw_other_data(file, difference(checkpoint.data, run.data, part));
  }
}

std::string versions_of_build() { return cat("lockstep ", version(), ", libtorch ", TORCH_VERSION); }

std::vector<std::string> RunRows::changes(const Origin& run, const Origin& checkpoint) const {
  std::vector<std::string> lines;
  for (const config::OptionSet* rows : {&rows_, &own_}) {
    for (const Option& row : rows->rows()) {
      if (row.effect != Effect::kTrajectory) continue;
      const std::string* recorded = find(checkpoint.options, row.name);
      const std::string then = recorded == nullptr ? row.default_value.value_or("") : *recorded;
      const std::string& now = run.option(row.name);
      if (now != then) lines.push_back(cat(spelled(row, then), " -> ", now.empty() ? "none" : now));
    }
  }
  if (!checkpoint.versions.empty() && checkpoint.versions != run.versions) {
    lines.push_back(cat(checkpoint.versions, " -> ", run.versions));
  }
  return lines;
}

std::string RunRows::recipe_text() const {
  return line_of(own_, [](const Option& row, const std::string& value) {
    return !value.empty() && value != row.none && !(is_flag(row) && value == "false");
  });
}

std::string RunRows::chosen_text(const config::Record& defaults) const {
  return line_of(rows_, [&defaults](const Option& row, const std::string& value) {
    const std::string* usual = find(defaults, row.name);
    return row.effect != Effect::kNone && row.form != config::OptionForm::kWord && !value.empty() &&
           value != row.default_value && (usual == nullptr || value != *usual);
  });
}

}  // namespace lockstep::train
