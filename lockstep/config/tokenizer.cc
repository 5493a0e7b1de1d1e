#include "lockstep/config/tokenizer.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <utility>

namespace lockstep::config {
namespace {

// `--amp mnist` is a bare --amp and a recipe: options left bare in this way go to the end, where nothing follows them.
std::vector<std::string> bare_options_last(std::span<const OptionShape> shapes, const std::vector<std::string>& args,
                                           std::span<const std::string> subjects) {
  const auto is_subject = [subjects](const std::string& word) {
    return std::find(subjects.begin(), subjects.end(), word) != subjects.end();
  };
  std::vector<std::string> kept, bare;
  for (size_t i = 0; i < args.size(); ++i) {
    const bool is_bare = std::any_of(shapes.begin(), shapes.end(), [&](const OptionShape& shape) {
      return shape.form == OptionForm::kOptionalValue && args[i] == "--" + shape.name;
    });
    (is_bare && i + 1 < args.size() && is_subject(args[i + 1]) ? bare : kept).push_back(args[i]);
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

// "--lr: expected a value, as in --lr X".
std::string missing_value(const std::string& spelled, std::span<const OptionShape> shapes) {
  const auto shape = std::find_if(shapes.begin(), shapes.end(),
                                  [&spelled](const OptionShape& each) { return "--" + each.name == spelled; });
  return cat(spelled, ": expected a value", shape == shapes.end() ? "" : cat(", as in ", spelled, ' ', shape->value));
}

// "--steps" or "--steps=3", of an option that is known.
bool is_an_option(const std::string& word, std::span<const OptionShape> shapes) {
  return std::any_of(shapes.begin(), shapes.end(), [&](const OptionShape& each) {
    const std::string name = "--" + each.name;
    return word == name || word.starts_with(name + "=");
  });
}

void parse(CLI::App& app, std::span<const OptionShape> shapes, std::vector<std::string> args) {
  std::reverse(args.begin(), args.end());
  try {
    app.parse(args);
  } catch (const CLI::CallForHelp&) {
    throw;
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string line = error.what();
    throw ConfigError(missing_value(line.substr(0, line.find(':')), shapes), "; --help lists the options");
  } catch (const CLI::ParseError& error) {
    std::string line = error.what();
    std::replace(line.begin(), line.end(), '\n', ' ');
    throw ConfigError(line, "; --help lists the options");
  }
}

// `spelled` as in "--epoch=3".
[[noreturn]] void refuse_unknown(const std::string& spelled, std::span<const OptionShape> shapes) {
  const std::string name = spelled.substr(0, spelled.find('='));
  std::vector<std::string> known = {"--help"};
  for (const auto& shape : shapes) {
    if (shape.form != OptionForm::kWord) known.push_back("--" + shape.name);
  }
  const std::string suggestion = did_you_mean(name, known);
  throw ConfigError(name, ": unknown option", suggestion.empty() ? "; --help lists the options" : suggestion);
}

}  // namespace

Given tokenize(std::span<const OptionShape> all, const std::vector<std::string>& args, Rest rest,
               std::span<const std::string> subjects, Repeated repeated) {
  std::vector<OptionShape> shapes(all.begin(), all.end());
  std::erase_if(shapes, [](const OptionShape& shape) { return shape.form == OptionForm::kWord; });
  CLI::App app;
  app.set_help_flag("-h,--help");
  app.allow_extras();
  if (rest == Rest::kProgram) app.prefix_command();
  const auto options = add_options(app, shapes);
  Given given;
  try {
    parse(app, shapes, rest == Rest::kProgram ? args : bare_options_last(shapes, args, subjects));
  } catch (const CLI::CallForHelp&) {
    given.help = true;
    return given;
  }
  given.words = app.remaining();
  // As for other programs, "--" ends the options.
  const bool ended = rest == Rest::kProgram && !given.words.empty() && given.words[0] == "--";
  if (ended) given.words.erase(given.words.begin());
  for (size_t i = 0; i < given.words.size(); ++i) {
    const bool is_option = given.words[i].size() > 1 && given.words[i][0] == '-';
    if (is_option && !ended && (rest == Rest::kOptions || i == 0)) refuse_unknown(given.words[i], shapes);
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (options[i]->count() == 0) continue;
    const auto& values = options[i]->results();
    // An option in its place is no value: somebody has forgotten it.
    const bool taken = shapes[i].form == OptionForm::kValue &&
                       std::ranges::any_of(values, [&](const std::string& each) { return is_an_option(each, shapes); });
    if (taken) throw ConfigError(missing_value("--" + shapes[i].name, shapes), "; --help lists the options");
    if (values.size() > 1 && repeated == Repeated::kRefused) {
      throw ConfigError("--", shapes[i].name, ": given twice; leave one of them out");
    }
    given.options.push_back({.name = shapes[i].name, .value = values.empty() ? "" : values.back()});
  }
  return given;
}

namespace {

// "lockstep bench data" -> "bench data".
std::string without_program(const std::string& command) { return command.substr(command.find(' ') + 1); }

}  // namespace

std::string only_word(const Given& given, const std::string& command, const std::string& what) {
  if (given.words.empty()) {
    throw ConfigError(without_program(command), ": ", what, " is missing; ", command, " --help says more");
  }
  if (given.words.size() > 1) {
    throw ConfigError(without_program(command), ": ", given.words[1], ": one word too many; ", command,
                      " --help says more");
  }
  return given.words[0];
}

void refuse_words(const Given& given, const std::string& command) {
  if (given.words.empty()) return;
  throw ConfigError(without_program(command), ": ", given.words[0], ": one word too many; ", command,
                    " --help says more");
}

std::string describe(std::span<const OptionShape> shapes) {
  constexpr size_t kColumn = 30;
  std::string out, section;
  for (const auto& shape : shapes) {
    if (shape.form == OptionForm::kWord) continue;
    if (shape.section != section) out += cat("\n", section = shape.section, ":\n");
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
