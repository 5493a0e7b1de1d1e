#include "lockstep/config/option_set.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::config {

Option& Option::bare(std::string bare_value) {
  form = OptionForm::kOptionalValue;
  set = [bare_value = std::move(bare_value), assign = set](const std::string& text) {
    assign(text.empty() ? bare_value : text);
  };
  return *this;
}

Option& Option::off(std::string value) {
  when_off = std::move(value);
  return *this;
}

Option& Option::stands_for(std::string other) {
  in_place_of = std::move(other);
  return *this;
}

Option& Option::none_at(std::string value) {
  none = std::move(value);
  return *this;
}

Option& Option::of_list() {
  is_list = true;
  return *this;
}

Option& Option::of_one_start() {
  one_start = true;
  return *this;
}

Option& Option::not_in_file() {
  in_file = false;
  return *this;
}

Option& OptionSet::text(const std::string& name, std::string value, std::string help, std::string* field,
                        Effect effect) {
  const auto read = [](const std::string& option, const std::string& given) {
    if (given.empty()) throw ConfigError("--", option, ": expected a value that is not empty");
    return given;
  };
  const auto write = [](const std::string& held) { return held; };
  Option& option = form(name, std::move(value), std::move(help), field, read, write, effect);
  option.get = [field]() -> std::optional<std::string> {
    if (field->empty()) return std::nullopt;
    return *field;
  };
  option.default_value = option.get();
  return option;
}

Option& OptionSet::toggle(const std::string& name, std::string help, bool* field, Effect effect) {
  const auto write = [](bool held) { return std::string(held ? "on" : "off"); };
  return form(name, "on|off", std::move(help), field, read_switch, write, effect);
}

Option& OptionSet::flag(const std::string& name, std::string help, bool* field, Effect effect) {
  const auto write = [](bool held) { return std::string(held ? "true" : "false"); };
  Option& option = form(name, "", std::move(help), field, read_switch, write, effect);
  option.form = OptionForm::kFlag;
  option.is_text = false;
  return option;
}

Option& OptionSet::rules(const std::string& name, std::string help, std::vector<Rule>* field, Effect effect) {
  Option& option = form(name, "'GLOB: NAME=X, …; …'", std::move(help), field, read_rules, write_rules, effect);
  option.is_rules = true;
  option.get = [field]() -> std::optional<std::string> {
    if (field->empty()) return std::nullopt;
    return write_rules(*field);
  };
  option.default_value = option.get();
  return option;
}

void OptionSet::subject(const std::string& name, std::string* field, Effect effect) {
  text(name, "", "", field, effect).form = OptionForm::kWord;
}

const Option* OptionSet::find(std::string_view name) const {
  const auto found = std::find_if(rows_.begin(), rows_.end(), [name](const Option& row) { return row.name == name; });
  return found == rows_.end() ? nullptr : &*found;
}

std::vector<OptionShape> OptionSet::shapes() const { return {rows_.begin(), rows_.end()}; }

void OptionSet::apply(std::span<const GivenOption> given) {
  for (const auto& [name, value] : given) {
    for (Option& row : rows_) {
      if (row.name == name) row.set(value);
    }
  }
}

void OptionSet::apply_as_given(std::span<const GivenOption> given) {
  apply(given);
  for (const auto& option : given) {
    for (Option& row : rows_) row.given = row.given || row.name == option.name;
  }
}

void OptionSet::apply_as_recalled(std::span<const GivenOption> recalled) {
  apply(recalled);
  for (const auto& option : recalled) {
    for (Option& row : rows_) {
      if (row.name == option.name) row.recalled = row.get();
    }
  }
}

void OptionSet::reset() {
  for (Option& row : rows_) {
    row.reset();
    row.given = false;
    row.recalled.reset();
  }
}

std::vector<std::string> OptionSet::arguments() const {
  std::vector<std::string> words, options;
  for (const Option& row : rows_) {
    const auto value = row.get();
    if (!value || (!row.given && (value == row.default_value || value == row.recalled))) continue;
    if (row.form == OptionForm::kWord) {
      words.push_back(*value);
    } else if (row.form != OptionForm::kFlag) {
      options.push_back(cat("--", row.name, "=", *value));
    } else {
      options.push_back(*value == "true" ? "--" + row.name : cat("--", row.name, "=false"));
    }
  }
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

Record OptionSet::record() const {
  Record record;
  for (const Option& row : rows_) {
    if (row.effect == Effect::kNone) continue;
    const auto value = row.get();
    record.push_back({row.name, value == row.none ? "" : value.value_or("")});
  }
  return record;
}

Option& OptionSet::add(Option option) {
  if (find(option.name) != nullptr) throw BugError("the option --", option.name, " is declared twice");
  option.section = section_;
  option.default_value = option.get();
  return rows_.emplace_back(std::move(option));
}

}  // namespace lockstep::config
