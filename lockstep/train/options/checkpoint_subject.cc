#include "lockstep/train/options/checkpoint_subject.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/config/inputs.h"
#include "lockstep/config/values.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/train/options/train_options.h"

namespace lockstep::train {
namespace {

// Whether a word names a file or folder, rightly or not, and no recipe.
bool is_path(const std::string& word) {
  std::error_code error;
  return word.find('/') != std::string::npos || std::filesystem::exists(word, error);
}

}  // namespace

CheckpointSubject::CheckpointSubject(std::string program, std::string command, const RecipeChoice& choice)
    : program_(std::move(program)), command_(std::move(command)), choice_(choice) {}

bool CheckpointSubject::is_recipe(const std::string& word) const {
  const auto& names = choice_.names();
  return std::find(names.begin(), names.end(), word) != names.end();
}

// The config.toml of the run that the checkpoint lies in.
OptionFile CheckpointSubject::file_of_run(const std::string& checkpoint) const {
  const std::string run = run_of(checkpoint);
  std::error_code error;
  if (run.empty() || !std::filesystem::exists(RunFiles{run}.config(), error)) return {};
  TrainOptions train;
  config::OptionSet rows;
  train.declare(rows);
  return read_option_file(RunFiles{run}.config(), choice_.shapes(rows));
}

CheckpointSubject::Found CheckpointSubject::find(const config::Given& line, const std::string& load,
                                                 const config::OptionSet& rows, config::OptionSet& own_rows) const {
  std::string word = line.words.empty() ? "" : only_word(line, cat(program_, ' ', command_), "RECIPE or RUN_DIR");
  std::string named = load, option = "--load";
  if (!word.empty() && !is_recipe(word) && is_path(word)) {
    if (load.empty()) named = word, option = command_;
    config::require_there(command_, word);
    word.clear();
  }
  if (named.empty()) {
    if (!word.empty()) choice_.choose(word, own_rows);
    throw ConfigError(command_, ": --load FILE is missing: which checkpoint? Name it, or a run's folder");
  }
  config::require_there(option, named);
  Found found{.load = named, .recipe = word, .run = file_of_run(checkpoint_at(option, named)), .description = nullptr};
  if (word.empty()) found.recipe = found.run.recipe;
  if (found.recipe.empty()) {
    throw ConfigError(option, ' ', named, ": no config.toml of a run says which recipe it is; name it: ", program_, ' ',
                      command_, ' ', config::either(choice_.names()));
  }
  found.description = choice_.choose(found.recipe, own_rows);
  own_rows.apply_as_given(line.options);
  for (const auto& each : line.options) {
    if (rows.find(each.name) == nullptr) choice_.refuse_others({&each, 1}, found.recipe, own_rows);
  }
  return found;
}

void take_record(const config::Record& record, config::OptionSet& own_rows) {
  const auto is_given = [&](const std::string& name) {
    const config::Option* row = own_rows.find(name);
    return row != nullptr && row->given;
  };
  const auto is_replaced = [&](const config::Option& recorded) {
    return is_given(recorded.in_place_of) ||
           std::any_of(own_rows.rows().begin(), own_rows.rows().end(),
                       [&](const auto& row) { return row.in_place_of == recorded.name && row.given; });
  };
  for (const auto& [name, value] : record) {
    const config::Option* row = own_rows.find(name);
    if (row == nullptr || row->given || value.empty() || is_replaced(*row)) continue;
    const config::GivenOption recorded{name, value};
    own_rows.apply({&recorded, 1});
  }
}

}  // namespace lockstep::train
