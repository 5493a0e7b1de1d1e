#include "lockstep/train/options/eval_command.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/config/tokenizer.h"

namespace lockstep::train {

void EvalOptions::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.section("Options");
  options.subject("recipe", &recipe, kNone);
  options.text("load", "FILE", "the checkpoint to evaluate (required)", &load, kNone);
  options.text("data", "DIR", "folder of the data set (left out: data made on the spot)", &data, kNone);
  options.number("batch-size", "N", "samples at a time", &batch_size, 1, 1 << 24, kNone);
  processes.declare(options);
  amp::declare_amp(options, &amp, kNone);
  options.flag("json", "machine-readable output", &json, kNone);
}

EvalCommand::EvalCommand(std::string program, RecipeDescriptions recipes)
    : program_(std::move(program)), choice_(std::move(recipes)) {
  options_.declare(rows_);
}

std::optional<std::string> EvalCommand::read(const std::vector<std::string>& args) {
  const auto shapes = choice_.shapes(rows_);
  const config::Given line = tokenize(shapes, args, config::Rest::kOptions, choice_.names());
  if (line.help) {
    return cat("Usage: ", program_, " eval RECIPE --load FILE [options]\n\nRECIPE: ", config::either(choice_.names()),
               ". Its own options are the checkpoint's, where the line says nothing.\n", config::describe(shapes),
               "\nExample:\n  ", program_, " eval ", choice_.names()[0], " --load runs/", choice_.names()[0],
               "-1/checkpoints/last.pt --json\n");
  }
  options_.recipe = only_word(line, cat(program_, " eval"), "RECIPE");
  recipe_ = choice_.choose(options_.recipe, own_rows_);
  rows_.apply_as_given(line.options);
  own_rows_.apply_as_given(line.options);
  for (const auto& option : line.options) {
    if (rows_.find(option.name) == nullptr) choice_.refuse_others({&option, 1}, options_.recipe, own_rows_);
  }
  recipe_->check();
  if (options_.load.empty()) throw ConfigError("eval: --load FILE is missing: which checkpoint is to be evaluated?");
  return std::nullopt;
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
  recipe_->check();
}

}  // namespace lockstep::train
