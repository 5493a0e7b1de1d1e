#include "lockstep/config/command_line.h"

#include <algorithm>
#include <array>
#include <span>

#include "lockstep/config/help.h"
#include "lockstep/config/tokenizer.h"
#include "lockstep/config/toml_file.h"

namespace lockstep::config {
namespace {

constexpr auto kCommands = std::to_array<std::string_view>({"train", "eval", "bench", "inspect", "launch", "doctor"});
constexpr auto kLaterCommands = std::to_array<std::string_view>({"predict", "convert", "dash"});

using Arguments = std::vector<std::string>;

template <typename Options>
void apply(const OptionTable<Options>& table, const std::vector<GivenOption>& given, Options& options) {
  for (const auto& option : given) {
    const auto row =
        std::find_if(table.begin(), table.end(), [&](const auto& each) { return each.name == option.name; });
    if (row != table.end()) row->set(options, option.value);
  }
}

// The one word that the command is about, "RECIPE" or "FILE"; `what` names it where there is none.
std::string only_word(const Given& given, const std::string& command, const std::string& what) {
  if (given.words.empty())
    throw ConfigError(command, ": ", what, " is missing; lockstep ", command, " --help says more");
  if (given.words.size() > 1) {
    throw ConfigError(command, ": ", given.words[1], ": one word too many; lockstep ", command, " --help says more");
  }
  return given.words[0];
}

// Values of the file first, those of the command line over them.
void apply_config_file(const std::string& path, const OptionTable<TrainOptions>& table, TrainOptions& options,
                       std::span<const std::string_view> but_for = {}) {
  auto from_file = read_toml(path, shapes_of(table));
  std::erase_if(from_file, [&](const GivenOption& option) {
    return std::find(but_for.begin(), but_for.end(), option.name) != but_for.end();
  });
  for (const auto& [name, value] : from_file) {
    if (name == "recipe") options.recipe = value;
  }
  try {
    apply(table, from_file, options);
  } catch (const ConfigError& error) {
    throw ConfigError(path, ": ", error.what());
  }
}

// Both sizes given in one place is a mistake; the command line's over the file's is not.
void let_later_size_win(const Given& given, TrainOptions& options) {
  const auto names = [&](std::string_view name) {
    return std::any_of(given.options.begin(), given.options.end(), [&](const auto& each) { return each.name == name; });
  };
  if (names("batch-size") && !names("global-batch-size")) options.global_batch_size.reset();
  if (names("global-batch-size") && !names("batch-size")) options.batch_size.reset();
}

Command parse_train(const Arguments& args, int cores, const std::string& resumed_config) {
  const auto table = train_table();
  auto shapes = shapes_of(table);
  shapes.push_back({.name = "config", .value = "FILE.toml", .help = {}});
  const Given given = tokenize(shapes, args);
  shapes.pop_back();
  if (given.help) return HelpCommand{train_help(shapes)};
  TrainOptions options;
  const auto file = std::find_if(given.options.begin(), given.options.end(),
                                 [](const GivenOption& option) { return option.name == "config"; });
  constexpr auto kOfOneStart = std::to_array<std::string_view>({"steps", "load", "quiet"});
  if (!resumed_config.empty()) apply_config_file(resumed_config, table, options, kOfOneStart);
  if (file != given.options.end()) apply_config_file(file->value, table, options);
  if (!given.words.empty() || options.recipe.empty()) options.recipe = only_word(given, "train", "RECIPE");
  apply(table, given.options, options);
  let_later_size_win(given, options);
  settle(options, cores);
  return options;
}

Command parse_eval(const Arguments& args) {
  const auto table = eval_table();
  const auto shapes = shapes_of(table);
  const Given given = tokenize(shapes, args);
  if (given.help) return HelpCommand{eval_help(shapes)};
  EvalOptions options;
  options.recipe = only_word(given, "eval", "RECIPE");
  check_recipe(options.recipe);
  apply(table, given.options, options);
  check_network(options.recipe, options.arch, options.size);
  if (options.load.empty()) throw ConfigError("eval: --load FILE is missing: which checkpoint is to be evaluated?");
  return options;
}

Command parse_bench(const Arguments& args) {
  const auto is_kind = [](const std::string& word) {
    const auto all = words(BenchKind{});
    return std::find(all.begin(), all.end(), word) != all.end();
  };
  const auto kind = std::find_if(args.begin(), args.end(), is_kind);
  if (kind == args.end()) {
    const bool wants_help =
        std::any_of(args.begin(), args.end(), [](const auto& a) { return a == "--help" || a == "-h"; });
    if (wants_help) return HelpCommand{bench_help()};
    if (!args.empty() && args[0] == "checkpoint")
      throw ConfigError("bench checkpoint: not available yet in this version");
    throw ConfigError("bench", args.empty() ? "" : " " + args[0], ": expected ", either(words(BenchKind{})));
  }
  BenchOptions options;
  options.kind = static_cast<BenchKind>(read_word("kind", *kind, words(BenchKind{})));
  Arguments others(args.begin(), kind);
  others.insert(others.end(), kind + 1, args.end());
  const auto table = bench_table(options.kind);
  const Given given = tokenize(shapes_of(table), others);
  if (given.help) return HelpCommand{bench_help()};
  if (options.kind == BenchKind::kData) {
    options.data = only_word(given, "bench data", "DIR");
  } else if (!given.words.empty()) {
    throw ConfigError("bench ", *kind, ": ", given.words[0], ": one word too many; lockstep bench --help says more");
  }
  apply(table, given.options, options);
  return options;
}

Command parse_inspect(const Arguments& args) {
  const auto table = inspect_table();
  const auto shapes = shapes_of(table);
  const Given given = tokenize(shapes, args);
  if (given.help) return HelpCommand{inspect_help(shapes)};
  InspectOptions options;
  options.file = only_word(given, "inspect", "FILE");
  apply(table, given.options, options);
  return options;
}

Command parse_launch(const Arguments& args) {
  const auto table = launch_table();
  const auto shapes = shapes_of(table);
  const Given given = tokenize(shapes, args, Rest::kProgram);
  if (given.help) return HelpCommand{launch_help(shapes)};
  LaunchOptions options;
  options.program = given.words;
  if (options.program.empty()) throw ConfigError("launch: PROGRAM is missing; lockstep launch --help says more");
  apply(table, given.options, options);
  return options;
}

Command parse_doctor(const Arguments& args) {
  const auto table = doctor_table();
  const auto shapes = shapes_of(table);
  const Given given = tokenize(shapes, args);
  if (given.help) return HelpCommand{doctor_help(shapes)};
  if (!given.words.empty()) throw ConfigError("doctor: ", given.words[0], ": one word too many; it takes none");
  DoctorOptions options;
  apply(table, given.options, options);
  return options;
}

[[noreturn]] void refuse_command(const std::string& name) {
  if (std::find(kLaterCommands.begin(), kLaterCommands.end(), name) != kLaterCommands.end()) {
    throw ConfigError(name, ": not available yet in this version; lockstep --help lists the commands");
  }
  const std::vector<std::string> known(kCommands.begin(), kCommands.end());
  const bool is_option = name.size() > 1 && name[0] == '-';
  const std::string suggestion = did_you_mean(name, known);
  throw ConfigError(name, is_option ? ": unknown option" : ": unknown command",
                    suggestion.empty() ? "; lockstep --help lists the commands" : suggestion);
}

// What differs from the defaults, each as one word.
template <typename Options>
void append_options(const OptionTable<Options>& table, const Options& options, Arguments& out) {
  const Options defaults;
  for (const auto& row : table) {
    const auto value = row.get(options);
    if (!value || value == row.get(defaults)) continue;
    out.push_back(row.form == OptionForm::kFlag ? "--" + row.name : cat("--", row.name, "=", *value));
  }
}

}  // namespace

Command parse_command(const std::vector<std::string>& args, int cores, const std::string& resumed_config) {
  if (args.empty()) throw ConfigError("which command? lockstep --help lists them");
  const std::string& name = args[0];
  const Arguments rest(args.begin() + 1, args.end());
  if (name == "--help" || name == "-h" || name == "help") {
    if (rest.empty()) return HelpCommand{general_help()};
    return parse_command({rest[0], "--help"}, cores);
  }
  if (name == "--version" || name == "version") return VersionCommand{};
  if (name == "train") return parse_train(rest, cores, resumed_config);
  if (name == "eval") return parse_eval(rest);
  if (name == "bench") return parse_bench(rest);
  if (name == "inspect") return parse_inspect(rest);
  if (name == "launch") return parse_launch(rest);
  if (name == "doctor") return parse_doctor(rest);
  refuse_command(name);
}

std::vector<std::string> to_arguments(const TrainOptions& options) {
  Arguments out = {"train", options.recipe};
  append_options(train_table(), options, out);
  return out;
}

std::vector<std::string> to_arguments(const EvalOptions& options) {
  Arguments out = {"eval", options.recipe};
  append_options(eval_table(), options, out);
  return out;
}

std::vector<std::string> to_arguments(const BenchOptions& options) {
  Arguments out = {"bench", std::string(to_string(options.kind))};
  if (!options.data.empty()) out.push_back(options.data);
  append_options(bench_table(options.kind), options, out);
  return out;
}

std::vector<std::string> to_arguments(const InspectOptions& options) {
  Arguments out = {"inspect", options.file};
  append_options(inspect_table(), options, out);
  return out;
}

}  // namespace lockstep::config
