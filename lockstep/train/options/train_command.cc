#include "lockstep/train/options/train_command.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/config/tokenizer.h"
#include "lockstep/config/toml_file.h"

namespace lockstep::train {
namespace {

using config::GivenOption;
using GivenOptions = std::vector<GivenOption>;

// Takes the option out of `given`; nothing if it is not there.
std::optional<std::string> take(GivenOptions& given, std::string_view name) {
  const auto found = std::find_if(given.begin(), given.end(), [name](const auto& each) { return each.name == name; });
  if (found == given.end()) return std::nullopt;
  std::string value = found->value;
  given.erase(found);
  return value;
}

bool names(const GivenOptions& given, std::string_view name) {
  return std::any_of(given.begin(), given.end(), [name](const auto& each) { return each.name == name; });
}

// Both sizes given in one place is a mistake; the command line's over the file's is not.
void resolve_batch_sizes(const GivenOptions& given, TrainOptions& options) {
  if (names(given, "batch-size") && !names(given, "global-batch-size")) options.global_batch_size.reset();
  if (names(given, "global-batch-size") && !names(given, "batch-size")) options.batch_size.reset();
}

// `apply` names the option; this names the file too.
template <typename Apply>
void of_file(const std::string& path, const Apply& apply) {
  try {
    apply();
  } catch (const ConfigError& error) {
    throw ConfigError(path, ": ", error.what());
  }
}

}  // namespace

TrainCommand::TrainCommand(std::string program, RecipeDescriptions recipes)
    : program_(std::move(program)), choice_(std::move(recipes)) {
  options_.declare(rows_);
}

std::optional<std::string> TrainCommand::read(const std::vector<std::string>& args, int cores,
                                              const FindResumedConfig& find_resumed) {
  auto shapes = choice_.shapes(rows_);
  shapes.push_back({.name = "config", .value = "FILE.toml", .help = {}});
  config::Given line = tokenize(shapes, args, config::Rest::kOptions, choice_.names());
  if (line.help) return help(args);
  const auto config = take(line.options, "config");
  const std::string file = config.value_or("");
  GivenOptions told = config ? from_file(file) : GivenOptions{};
  std::string name = take(told, "recipe").value_or("");
  if (!line.words.empty() || name.empty()) name = only_word(line, cat(program_, " train"), "RECIPE");
  recipe_ = choice_.choose(name, rows_);
  choice_.refuse_others(told, name, rows_);
  choice_.refuse_others(line.options, name, rows_);
  const auto apply = [&](const std::string& resumed_config, const GivenOptions& resumed) {
    rows_.reset();
    options_.recipe = name;
    of_file(resumed_config, [&] { rows_.apply(resumed); });
    of_file(file, [&] { rows_.apply_as_given(told); });
    rows_.apply_as_given(line.options);
    resolve_batch_sizes(line.options, options_);
  };
  apply("", {});
  const std::string resumed_config = options_.resume && find_resumed ? find_resumed(options_) : "";
  if (!resumed_config.empty()) {
    GivenOptions resumed = from_file(resumed_config);
    take(resumed, "recipe");
    choice_.refuse_others(resumed, name, rows_);
    std::erase_if(resumed, [&](const GivenOption& option) { return rows_.find(option.name)->one_start; });
    apply(resumed_config, resumed);
  }
  options_.resolve(cores);
  check_preset(*recipe_, options_.preset);
  recipe_->check();
  return std::nullopt;
}

std::vector<std::string> TrainCommand::arguments() const {
  std::vector<std::string> words = rows_.arguments();
  words.insert(words.begin(), "train");
  return words;
}

// The files of runs before the ring became the bench's say how these reduced.
std::vector<GivenOption> TrainCommand::from_file(const std::string& path) const {
  auto shapes = choice_.shapes(rows_);
  shapes.push_back({.name = "algorithm", .value = "fold", .help = {}});
  GivenOptions given = config::read_toml(path, shapes);
  const std::string algorithm = take(given, "algorithm").value_or("fold");
  if (algorithm == "fold") return given;
  throw ConfigError(path, ": algorithm ", algorithm, ": a training folds; the ring is `bench allreduce`'s");
}

std::string TrainCommand::help(const std::vector<std::string>& args) {
  const std::string named = choice_.named_in(args);
  std::string text = cat("Usage: ", program_, " train ", named.empty() ? "RECIPE" : named, " [options]\n\n");
  if (named.empty()) text += cat("RECIPE: ", config::either(choice_.names()), ". ");
  text += "What is not said here is left to the recipe.\n";
  for (const std::string& name : named.empty() ? choice_.names() : std::vector<std::string>{named}) {
    config::OptionSet own;
    const auto presets = choice_.choose(name, own)->presets();
    text += describe(own.shapes());
    if (!presets.empty()) text += cat("\nPresets of ", name, ": ", config::either(presets), "\n");
  }
  return cat(text, describe(rows_.shapes()), R"(
Options from a file:
  --config FILE.toml          the command line wins

Examples:
  )",
             program_, " train ", named.empty() ? choice_.names()[0] : named, " --nproc 2 --amp --epochs 3\n  ",
             program_, " train ", named.empty() ? choice_.names()[0] : named, " --resume runs/",
             named.empty() ? choice_.names()[0] : named, "-1\n");
}

}  // namespace lockstep::train
