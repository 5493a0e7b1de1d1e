#include "lockstep/train/options/eval_command.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/config/inputs.h"
#include "lockstep/config/tokenizer.h"
#include "lockstep/config/values.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/train/options/train_options.h"

namespace lockstep::train {
namespace {

std::string help(const std::string& program, const std::vector<config::OptionShape>& shapes,
                 const std::vector<std::string>& names) {
  return cat("Usage: ", program, " eval RECIPE --load FILE [options]\n       ", program,
             " eval RUN_DIR [options]\n\nRECIPE: ", config::either(names),
             ". Its own options are the checkpoint's, where the line says nothing.\n"
             "Of a run's folder the newest checkpoint is evaluated; recipe and data are those of its config.toml.\n",
             config::describe(shapes), "\nExamples:\n  ", program, " eval runs/", names[0], "-1\n  ", program, " eval ",
             names[0], " --load runs/", names[0], "-1/checkpoints/best.pt --json\n");
}

// Whether a word names a file or folder, rightly or not, and no recipe.
bool is_path(const std::string& word) {
  std::error_code error;
  return word.find('/') != std::string::npos || std::filesystem::exists(word, error);
}

}  // namespace

void EvalOptions::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.section("Options");
  options.subject("recipe", &recipe, kNone);
  options.text("load", "FILE", "the checkpoint to evaluate", &load, kNone);
  options.text("data", "DIR", "folder of the data set (left out: the run's; without a run, made on the spot)", &data,
               kNone);
  options.number("skip-bad", "N", "leave out up to N samples that can't be read, beside those that the run met",
                 &skip_bad, 0, 1'000'000, kNone);
  options.number("batch-size", "N", "samples at a time", &batch_size, 1, 1 << 24, kNone);
  processes.declare(options);
  precision.declare(options, kNone);
  device.declare(options, kNone);
  options.flag("json", "machine-readable output", &json, kNone);
}

EvalCommand::EvalCommand(std::string program, RecipeDescriptions recipes)
    : program_(std::move(program)), choice_(std::move(recipes)) {
  options_.declare(rows_);
}

std::optional<std::string> EvalCommand::read(const std::vector<std::string>& args) {
  const auto shapes = choice_.shapes(rows_);
  const config::Given line = tokenize(shapes, args, config::Rest::kOptions, choice_.names());
  if (line.help) return help(program_, shapes, choice_.names());
  // The word is a recipe, or names what is to be evaluated.
  std::string word = line.words.empty() ? "" : only_word(line, cat(program_, " eval"), "RECIPE or RUN_DIR");
  rows_.apply_as_given(line.options);
  std::string named = options_.load, option = "--load";
  if (!word.empty() && !is_recipe(word) && is_path(word)) {
    if (options_.load.empty()) named = word, option = "eval";
    config::require_there("eval", word);
    word.clear();
  }
  if (named.empty()) {
    if (!word.empty()) choice_.choose(word, own_rows_);
    throw ConfigError("eval: --load FILE is missing: which checkpoint is to be evaluated? Name it, or a run's folder");
  }
  config::require_there(option, named);
  options_.load = named;
  const OptionFile run = file_of_run(checkpoint_at(option, named));
  if (word.empty()) word = run.recipe;
  if (word.empty()) {
    throw ConfigError(option, ' ', named, ": no config.toml of a run says which recipe it is; name it: ", program_,
                      " eval ", config::either(choice_.names()));
  }
  options_.recipe = word;
  recipe_ = choice_.choose(options_.recipe, own_rows_);
  own_rows_.apply_as_given(line.options);
  for (const auto& each : line.options) {
    if (rows_.find(each.name) == nullptr) choice_.refuse_others({&each, 1}, options_.recipe, own_rows_);
  }
  if (!run.path.empty() && run.recipe == options_.recipe) {
    options_.run_data = value_of(run.options, "data").value_or("");
    if (const auto most = value_of(run.options, "skip-bad"); most && !most->empty()) {
      options_.run_skip_bad = config::read_whole("skip-bad", *most, 0, 1'000'000);
    }
  }
  if (const std::string path = options_.data_path(); !path.empty()) {
    config::require_there("--data", path, "; leave --data out to evaluate on the run's own");
  }
  recipe_->check();
  return std::nullopt;
}

bool EvalCommand::is_recipe(const std::string& word) const {
  const auto& names = choice_.names();
  return std::find(names.begin(), names.end(), word) != names.end();
}

// The config.toml of the run that the checkpoint lies in.
OptionFile EvalCommand::file_of_run(const std::string& checkpoint) const {
  const std::string run = run_of(checkpoint);
  std::error_code error;
  if (run.empty() || !std::filesystem::exists(RunFiles{run}.config(), error)) return {};
  TrainOptions train;
  config::OptionSet rows;
  train.declare(rows);
  return read_option_file(RunFiles{run}.config(), choice_.shapes(rows));
}

std::vector<std::string> EvalCommand::arguments() const {
  std::vector<std::string> words = {"eval"};
  for (const config::OptionSet* rows : {&rows_, &own_rows_}) {
    for (auto& word : rows->arguments()) words.push_back(std::move(word));
  }
  return words;
}

void EvalCommand::take_recorded(const config::Record& record) {
  for (const auto& [name, value] : record) {
    const config::Option* row = own_rows_.find(name);
    if (row == nullptr || row->given || value.empty()) continue;
    const config::GivenOption recorded{name, value};
    own_rows_.apply({&recorded, 1});
  }
  recipe_->resolve(options_.data_path());
  recipe_->check();
}

}  // namespace lockstep::train
