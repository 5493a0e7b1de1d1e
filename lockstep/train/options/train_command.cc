#include "lockstep/train/options/train_command.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/config/tokenizer.h"
#include "lockstep/schedule/options/schedules.h"

namespace lockstep::train {
namespace {

using config::GivenOption;
using GivenOptions = std::vector<GivenOption>;

bool names(const GivenOptions& given, std::string_view name) { return value_of(given, name).has_value(); }

// Drops from a resumed run's options those that go with a choice which `later` makes anew: the momentum of another
// optimizer, the shape of another schedule.
void drop_dependents(GivenOptions& recalled, const GivenOptions& later, const config::OptionSet& rows) {
  const auto chosen_anew = [&](const char* name) {
    const auto now = value_of(later, name), then = value_of(recalled, name);
    return now && then && !now->empty() && *now != "auto" && now != then;
  };
  const auto drop = [&recalled](std::string_view name) { take(recalled, name); };
  if (chosen_anew("amp")) drop("keep-batchnorm-fp32"), drop("loss-scale");
  if (chosen_anew("optimizer")) drop("momentum"), drop("nesterov"), drop("weight-decay");
  if (!chosen_anew("schedule")) return;
  const std::array<std::string_view, 5> of_any_schedule = {"lr", "lr-min", "scale-lr", "schedule-unit",
                                                           "schedule-steps"};
  const std::string section = rows.find("schedule")->section;
  for (const config::Option& row : rows.rows()) {
    const bool stays = std::find(of_any_schedule.begin(), of_any_schedule.end(), row.name) != of_any_schedule.end();
    if (row.section == section && !stays) drop(row.name);
  }
}

// Drops from an earlier place what goes with another form of parallel training than a later one asks for.
void drop_other_form(GivenOptions& earlier, const GivenOptions& later) {
  const auto now = value_of(later, "parallel");
  if (!now) return;
  if (*now != "pipeline") take(earlier, "stages"), take(earlier, "schedule-pp");
  if (*now != "dp") take(earlier, "replicas");
  if (*now != "ps") take(earlier, "servers");
  if (*now == "pipeline" || *now == "ps") take(earlier, "shard-optimizer");  // each weight has its owner there
}

// The same of an earlier run, whose processes are those of its form.
void drop_form_of_run(GivenOptions& resumed, const GivenOptions& later) {
  const auto now = value_of(later, "parallel");
  if (now && value_of(resumed, "parallel").value_or("ddp") != *now) take(resumed, "nproc");
  drop_other_form(resumed, later);
}

// Drops what a later place says by another option (Option::in_place_of).
void drop_replaced(GivenOptions& earlier, const GivenOptions& later, const config::OptionSet& rows) {
  for (const config::Option& row : rows.rows()) {
    if (row.in_place_of.empty()) continue;
    if (names(later, row.name)) take(earlier, row.in_place_of);
    if (names(later, row.in_place_of)) take(earlier, row.name);
  }
}

// Both sizes given in one place is a mistake; one given over the other of an earlier place is not.
void resolve_batch_sizes(const GivenOptions& given, TrainOptions& options) {
  if (names(given, "batch-size") && !names(given, "global-batch-size")) options.global_batch_size.reset();
  if (names(given, "global-batch-size") && !names(given, "batch-size")) options.batch_size.reset();
}

// Drops what an earlier place says of histograms where a later one writes no event files that could have them.
void drop_histograms(GivenOptions& earlier, const GivenOptions& later) {
  const auto track = value_of(later, "track");
  if (track && !read_tracked("track", *track).tensorboard && !names(later, "histograms-every")) {
    take(earlier, "histograms-every");
  }
}

// A resumed run's file says all that a preset could.
void refuse_preset_of_a_run(const std::optional<std::string>& preset, const OptionFile& resumed) {
  if (resumed.path.empty() || !preset || preset == value_of(resumed.options, "preset")) return;
  throw ConfigError("--preset ", *preset,
                    ": a resumed run keeps its settings; leave it out, or begin anew with --load");
}

// A preset's --lr-min goes with its --lr.
void check_least_rate(const GivenOptions& preset, const std::string& name, const TrainOptions& options,
                      const config::OptionSet& rows) {
  if (!names(preset, "lr-min") || rows.find("lr-min")->given) return;
  if (!options.rate.lr || options.rate.lr_min <= *options.rate.lr) return;
  throw ConfigError("--lr ", *options.rate.lr, ": below the least rate of --preset ", name, ", ", options.rate.lr_min,
                    "; give --lr-min too, such as --lr-min 0");
}

// "Other names: -e (--epochs), …", in lines of a terminal's width; empty without any.
std::string other_names(const RecipeDescription& recipe) {
  constexpr size_t kWidth = 100;
  std::string text, line = "\nOther names:";
  const auto all = recipe.spellings();
  for (const config::Spelling& each : all) {
    std::string dashed = each.other;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    const bool twice = std::any_of(all.begin(), all.end(), [&](const auto& other) { return other.other == dashed; });
    if (dashed != each.other && twice) continue;  // the same with dashes
    const std::string name = cat(' ', each.other, " (--", each.option, ")");
    if (line.size() + name.size() > kWidth) text += line + "\n", line = "            ";
    line += name;
  }
  return all.empty() ? "" : text + line + "\n";
}

// The name of the preset, by the first place that gives one, and the place's file; empty: the line.
struct NamedPreset {
  std::optional<std::string> name;
  std::string file;
};
NamedPreset preset_of(const GivenOptions& line, const OptionFile& told, const OptionFile& resumed) {
  if (const auto name = value_of(line, "preset")) return {name, ""};
  if (const auto name = value_of(told.options, "preset")) return {name, told.path};
  return {value_of(resumed.options, "preset"), resumed.path};
}

// The preset that nothing names, of a run that begins: by its data. A later place's options come last.
std::string usual_preset(const RecipeDescription& recipe, const OptionFile& told, const GivenOptions& line) {
  GivenOptions given = told.options;
  given.insert(given.end(), line.begin(), line.end());
  const auto data = value_of(line, "data");
  return recipe.usual_preset(data ? *data : value_of(told.options, "data").value_or(""), given);
}

// The options that say which run is meant; all others wait until its recipe is known.
TrainOptions place_of(const GivenOptions& line, const OptionFile& told, const std::string& word) {
  TrainOptions asked;
  asked.recipe = word.empty() ? told.recipe : word;
  asked.resume = value_of(line, "resume");
  if (!asked.resume) asked.resume = value_of(told.options, "resume");
  asked.out = value_of(line, "out").value_or(value_of(told.options, "out").value_or(""));
  return asked;
}

// `what` is the option and the file or run that it names.
void refuse_other_recipe(const std::string& what, const std::string& recipe, const std::string& name) {
  if (recipe.empty() || recipe == name) return;
  throw ConfigError(what, ": of the recipe ", recipe, ", not of ", name, "; leave ", name,
                    " out, or name another file");
}

// A path as a shell reads it.
std::string quoted(const std::string& path) {
  const auto is_plain = [](char each) {
    return std::isalnum(static_cast<unsigned char>(each)) || std::strchr("/._-+=@%,:", each) != nullptr;
  };
  if (std::all_of(path.begin(), path.end(), is_plain)) return path;
  std::string text = "'";
  for (const char each : path) text += each == '\'' ? "'\\''" : std::string(1, each);
  return text + "'";
}

// `apply` names the option; this names the file too, if it is one.
template <typename Apply>
void of_file(const std::string& path, const Apply& apply) {
  try {
    apply();
  } catch (const ConfigError& error) {
    if (path.empty()) throw;
    throw ConfigError(path, ": ", error.what());
  }
}

// The weights that the options name, among others.
WeightsOptions weights_in(const std::vector<GivenOption>& options) {
  WeightsOptions weights;
  config::OptionSet rows;
  weights.declare_start(rows);
  rows.apply(options);
  return weights;
}

// Whether it is --load, or an option that goes with it.
bool is_of_weights(std::string_view name) {
  WeightsOptions weights;
  config::OptionSet rows;
  weights.declare_start(rows);
  return rows.find(name) != nullptr;
}

}  // namespace

TrainCommand::TrainCommand(std::string program, RecipeDescriptions recipes)
    : program_(std::move(program)), choice_(std::move(recipes)) {
  options_.declare(rows_);
}

std::optional<std::string> TrainCommand::read(const std::vector<std::string>& args, const parallel::Machine& machine,
                                              const FindResumedConfig& find_resumed) {
  const auto keys = choice_.shapes(rows_);
  auto shapes = keys;
  shapes.push_back({.name = "config", .value = "FILE.toml", .help = {}});
  const auto words = config::respell(args, choice_.spellings(choice_.named_in(args)), shapes);
  config::Given line = tokenize(shapes, words, config::Rest::kOptions, choice_.names());
  if (line.help) return help(args);
  const auto config = take(line.options, "config");
  if (config && config->empty()) throw ConfigError("--config: expected the name of a file");
  const OptionFile told = read_option_file(config.value_or(""), keys);
  const std::string word = line.words.empty() ? "" : only_word(line, cat(program_, " train"), "RECIPE");
  const TrainOptions asked = place_of(line.options, told, word);
  const bool any_run = asked.resume && asked.resume->empty() && asked.out.empty();
  if (any_run && asked.recipe.empty()) only_word(line, cat(program_, " train"), "RECIPE");
  const std::string resumed_config = asked.resume && find_resumed ? find_resumed(asked) : "";
  OptionFile resumed = read_option_file(resumed_config, keys);

  std::string name = word.empty() ? told.recipe : word;
  if (name.empty()) name = resumed.recipe;
  if (name.empty()) name = only_word(line, cat(program_, " train"), "RECIPE");
  if (recipe_) refuse_other_recipe(cat("--resume ", asked.resume.value_or("")), name, recipe_->name());
  if (!recipe_) recipe_ = choice_.choose(name, rows_);  // which declares its rows
  refuse_other_recipe(cat("--config ", told.path), told.recipe, name);
  refuse_other_recipe(cat("--resume ", asked.resume.value_or("")), resumed.recipe, name);
  if (!told.parent.empty() && !asked.resume) {
    throw ConfigError("--config ", told.path, ": of a run that was forked from ", told.parent, "; add --resume ",
                      told.parent, " and --out DIR to repeat it, or delete the key parent to begin anew");
  }
  choice_.refuse_others(resumed.options, name, rows_);
  choice_.refuse_others(told.options, name, rows_);
  choice_.refuse_others(line.options, name, rows_);
  apply(name, resumed, told, line.options);
  options_.precision.check_given(rows_);
  options_.resolve(machine, recipe_->lanes());
  recipe_->resolve(options_.data.path);
  recipe_->check();
  return std::nullopt;
}

void TrainCommand::apply(const std::string& recipe, OptionFile& resumed, const OptionFile& file,
                         const std::vector<GivenOption>& line) {
  rows_.reset();
  options_.recipe = recipe;
  auto [preset, place] = preset_of(line, file, resumed);
  std::vector<GivenOption> usual;
  of_file(place, [&, name = preset] {
    refuse_preset_of_a_run(name, resumed);
    usual = preset_options(*recipe_, name.value_or(""));
  });
  if (!preset && resumed.path.empty()) {
    preset = usual_preset(*recipe_, file, line);
    usual = preset_options(*recipe_, *preset);
    if (!preset->empty()) rows_.apply_as_given(GivenOptions{{"preset", *preset}});  // ranks are told, and don't look
  }
  options_.parent = resumed.parent;
  options_.loaded = weights_in(resumed.options);
  std::erase_if(resumed.options, [&](const GivenOption& option) { return rows_.find(option.name)->one_start; });
  OptionFile told = file;
  // A fork's own file: its parent began with these weights, and --resume brings what became of them.
  const bool is_fork = !told.parent.empty();
  if (is_fork && names(told.options, "load")) options_.loaded = weights_in(told.options);
  // How a file's weights are read is not said of others, which the line names.
  if (is_fork || names(line, "load")) {
    std::erase_if(told.options, [](const GivenOption& option) { return is_of_weights(option.name); });
  }
  drop_dependents(resumed.options, told.options, rows_);
  drop_dependents(resumed.options, line, rows_);
  const auto warmup = value_of(usual, "warmup");  // a preset's goes with any schedule that has none of its own
  bool warms_up = false;
  for (const auto* later : std::initializer_list<const GivenOptions*>{&resumed.options, &told.options, &line}) {
    drop_dependents(usual, *later, rows_);
    drop_replaced(usual, *later, rows_);
    drop_other_form(usual, *later);
    if (const auto schedule = value_of(*later, "schedule")) warms_up = schedule::warms_up(*schedule);
  }
  if (warmup && !warms_up && !value_of(usual, "warmup")) usual.push_back({"warmup", *warmup});
  if (names(resumed.options, "hold-out")) take(resumed.options, "validation");  // older versions recorded both
  drop_replaced(resumed.options, told.options, rows_);
  drop_replaced(resumed.options, line, rows_);
  drop_replaced(told.options, line, rows_);
  drop_form_of_run(resumed.options, told.options);
  drop_form_of_run(resumed.options, line);
  drop_other_form(told.options, line);
  for (GivenOptions* earlier : {&usual, &resumed.options}) drop_histograms(*earlier, told.options);
  for (GivenOptions* earlier : {&usual, &resumed.options, &told.options}) drop_histograms(*earlier, line);
  options_.epochs_recalled =
      names(resumed.options, "epochs") && !names(told.options, "epochs") && !names(line, "epochs");
  rows_.apply_as_recalled(usual);
  of_file(resumed.path, [&] { rows_.apply_as_recalled(resumed.options); });
  of_file(told.path, [&] { rows_.apply_as_given(told.options); });
  resolve_batch_sizes(told.options, options_);
  rows_.apply_as_given(line);
  resolve_batch_sizes(line, options_);
  check_least_rate(usual, preset.value_or(""), options_, rows_);
}

std::vector<std::string> TrainCommand::arguments() const {
  std::vector<std::string> words = rows_.arguments();
  words.insert(words.begin(), "train");
  return words;
}

std::string TrainCommand::resume_command(const std::string& folder) const {
  std::string command = cat(program_, " train ", options_.recipe, " --resume ", quoted(folder));
  for (const config::Option& row : rows_.rows()) {
    const bool goes_on = !is_of_weights(row.name) && row.name != "overwrite";  // these said how the run began
    if (!row.one_start || !row.given || !goes_on) continue;
    command += cat(" --", row.name, row.form == config::OptionForm::kFlag ? "" : cat(' ', row.get().value_or("")));
  }
  return command;
}

std::string TrainCommand::help(const std::vector<std::string>& args) {
  const std::string named = choice_.named_in(args);
  std::string text = cat("Usage: ", program_, " train ", named.empty() ? "RECIPE" : named, " [options]\n\n");
  if (named.empty()) text += cat("RECIPE: ", config::either(choice_.names()), ". ");
  text += "What is not said here is left to the recipe.\n";
  for (const std::string& name : named.empty() ? choice_.names() : std::vector<std::string>{named}) {
    config::OptionSet own;
    const auto recipe = choice_.choose(name, own);
    const auto presets = preset_names(*recipe);
    text += describe(own.shapes());
    if (!presets.empty()) text += cat("\nPresets of ", name, ": ", config::either(presets), "\n");
    text += other_names(*recipe);
  }
  return cat(text, describe(rows_.shapes()), R"(
Options from a file:
  --config FILE.toml          the command line wins

Examples:
  )",
             program_, " train ", named.empty() ? choice_.names()[0] : named, " --nproc 2 --amp --epochs 3\n  ",
             program_, " train ", named.empty() ? choice_.names()[0] : named, " --resume runs/",
             named.empty() ? choice_.names()[0] : named, "-1\n  ", program_, " train --resume runs/",
             named.empty() ? choice_.names()[0] : named, "-1/checkpoints/step-000200.pt   # an older one: a new run\n");
}

}  // namespace lockstep::train
