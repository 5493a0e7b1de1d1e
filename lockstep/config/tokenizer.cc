#include "lockstep/config/tokenizer.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <utility>

#include "lockstep/config/train_options.h"

namespace lockstep::config {
namespace {

// Options of the whole design that this version does not have: named as such, not as slips of the hand.
constexpr auto kLater =
    std::to_array<std::string_view>({"--keep-batchnorm-fp32", "--snapshot-every", "--max-restarts", "--dashboard"});

bool is_recipe(const std::string& word) { return std::find(kRecipes.begin(), kRecipes.end(), word) != kRecipes.end(); }

// `--amp mnist` is a bare --amp and a recipe: options left bare in this way go to the end, where nothing follows them.
std::vector<std::string> bare_options_last(std::span<const OptionShape> shapes, const std::vector<std::string>& args) {
  std::vector<std::string> kept, bare;
  for (size_t i = 0; i < args.size(); ++i) {
    const bool is_bare = std::any_of(shapes.begin(), shapes.end(), [&](const OptionShape& shape) {
      return shape.form == OptionForm::kOptionalValue && args[i] == "--" + shape.name;
    });
    (is_bare && i + 1 < args.size() && is_recipe(args[i + 1]) ? bare : kept).push_back(args[i]);
  }
  kept.insert(kept.end(), bare.begin(), bare.end());
  return kept;
}

std::vector<CLI::Option*> add_options(CLI::App& app, std::span<const OptionShape> shapes) {
  std::vector<CLI::Option*> added;
  for (const auto& shape : shapes) {
    const std::string name = "--" + shape.name;
    auto* const option = shape.form == OptionForm::kFlag ? app.add_flag(name) : app.add_option(name);
    if (shape.form == OptionForm::kOptionalValue) option->expected(0, 1);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    added.push_back(option);
  }
  return added;
}

void parse(CLI::App& app, std::vector<std::string> args) {
  std::reverse(args.begin(), args.end());
  try {
    app.parse(args);
  } catch (const CLI::CallForHelp&) {
    throw;
  } catch (const CLI::ParseError& error) {
    std::string line = error.what();
    std::replace(line.begin(), line.end(), '\n', ' ');
    throw ConfigError(line, "; --help lists the options");
  }
}

}  // namespace

void refuse_unknown(const std::string& spelled, std::span<const OptionShape> shapes) {
  const std::string name = spelled.substr(0, spelled.find('='));
  if (std::find(kLater.begin(), kLater.end(), name) != kLater.end()) {
    throw ConfigError(name, ": not available yet in this version; leave it out");
  }
  std::vector<std::string> known = {"--help"};
  for (const auto& shape : shapes) known.push_back("--" + shape.name);
  const std::string suggestion = did_you_mean(name, known);
  throw ConfigError(name, ": unknown option", suggestion.empty() ? "; --help lists the options" : suggestion);
}

Given tokenize(std::span<const OptionShape> shapes, const std::vector<std::string>& args, Rest rest) {
  CLI::App app;
  app.set_help_flag("-h,--help");
  app.allow_extras();
  if (rest == Rest::kProgram) app.prefix_command();
  const auto options = add_options(app, shapes);
  Given given;
  try {
    parse(app, rest == Rest::kProgram ? args : bare_options_last(shapes, args));
  } catch (const CLI::CallForHelp&) {
    given.help = true;
    return given;
  }
  given.words = app.remaining();
  for (size_t i = 0; i < given.words.size(); ++i) {
    const bool is_option = given.words[i].size() > 1 && given.words[i][0] == '-';
    if (is_option && (rest == Rest::kOptions || i == 0)) refuse_unknown(given.words[i], shapes);
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (options[i]->count() == 0) continue;
    const auto& values = options[i]->results();
    if (values.size() > 1) throw ConfigError("--", shapes[i].name, ": given twice; leave one of them out");
    given.options.push_back({.name = shapes[i].name, .value = values.empty() ? "" : values.front()});
  }
  return given;
}

std::string describe(std::span<const OptionShape> shapes) {
  constexpr size_t kColumn = 30;
  std::string out, group;
  for (const auto& shape : shapes) {
    if (shape.group != group) out += cat("\n", group = shape.group, ":\n");
    std::string line = "  --" + shape.name;
    if (!shape.value.empty())
      line += shape.form == OptionForm::kOptionalValue ? " [" + shape.value + "]" : " " + shape.value;
    if (!shape.help.empty()) {
      line += line.size() + 2 > kColumn ? "\n" + std::string(kColumn, ' ') : std::string(kColumn - line.size(), ' ');
      line += shape.help;
    }
    out += line + "\n";
  }
  return out;
}

}  // namespace lockstep::config
