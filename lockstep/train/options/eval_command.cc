#include "lockstep/train/options/eval_command.h"

#include <filesystem>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/config/inputs.h"
#include "lockstep/config/spellings.h"
#include "lockstep/config/tokenizer.h"
#include "lockstep/config/values.h"
#include "lockstep/train/options/checkpoint_subject.h"

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

void check_picture(const EvalOptions& options) {
  if (options.worst == 0 && options.out.empty()) return;
  if (options.out.empty()) throw ConfigError("--worst ", options.worst, ": into which file? Say --out sheet.png");
  if (options.worst == 0) throw ConfigError("--out ", options.out, ": it goes with --worst N, whose picture it is");
  if (!options.out.ends_with(".png")) throw ConfigError("--out ", options.out, ": it is a PNG; call it sheet.png");
  const auto folder = std::filesystem::path(options.out).parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return;
  throw ConfigError("--out ", options.out, ": there is no folder ", folder.string(), "; make it first");
}

}  // namespace

void EvalOptions::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.section("Options");
  options.subject("recipe", &recipe, kNone);
  weights.declare(options, "the checkpoint to evaluate");
  options.text("data", "DIR", "folder of the data set (left out: the run's; without a run, made on the spot)", &data,
               kNone);
  options.number("skip-bad", "N", "leave out up to N samples that can't be read, beside those that the run met",
                 &skip_bad, 0, 1'000'000, kNone);
  options.number("batch-size", "N", "samples at a time", &batch_size, 1, 1 << 24, kNone);
  processes.declare(options);
  precision.declare(options, kNone);
  device.declare(options, kNone);
  options.word("split", "the part of the data (left out: that of the run's own test)", &split, kNone);
  options.flag("confusion", "count which classes, or pixels' classes, are taken for which", &confusion, kNone);
  options.number("worst", "N", "draw the N samples on which the network does worst (with --out)", &worst, 1, 256,
                 kNone);
  options.text("out", "FILE.png", "the picture of --worst: images, for masks beside the true and the predicted ones",
               &out, kNone);
  options.flag("json", "machine-readable output", &json, kNone);
}

EvalCommand::EvalCommand(std::string program, RecipeDescriptions recipes)
    : program_(std::move(program)), choice_(std::move(recipes)) {
  options_.declare(rows_);
}

std::optional<std::string> EvalCommand::read(const std::vector<std::string>& args) {
  const auto shapes = choice_.shapes(rows_);
  const auto words = config::respell(args, choice_.spellings(choice_.named_in(args)), shapes);
  const config::Given line = tokenize(shapes, words, config::Rest::kOptions, choice_.names());
  if (line.help) return help(program_, shapes, choice_.names());
  rows_.apply_as_given(line.options);
  const auto found = CheckpointSubject(program_, "eval", choice_).find(line, options_.weights.load, rows_, own_rows_);
  options_.weights.load = found.load;
  options_.recipe = found.recipe;
  recipe_ = found.description;
  const OptionFile& run = found.run;
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
  check_picture(options_);
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
  take_record(record, own_rows_);
  recipe_->resolve(options_.data_path());
  recipe_->check();
}

}  // namespace lockstep::train
