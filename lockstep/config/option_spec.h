// One row for each option of a command: the command line, TOML files, help and the record of a run are all made from
// these rows, so an option is declared in one place.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "lockstep/config/values.h"

namespace lockstep::config {

enum class OptionForm { kValue, kFlag, kOptionalValue };

// What the command line and help need to know of an option.
struct OptionShape {
  std::string name;   // "batch-size": --batch-size, and the key in a TOML file
  std::string value;  // "N", as help names it; empty for flags
  std::string help;
  OptionForm form = OptionForm::kValue;
  std::string group = {};
  bool is_text = false;  // quoted in TOML, even if it looks like a number
};

template <typename Options>
struct OptionSpec : OptionShape {
  std::function<void(Options&, const std::string&)> set;          // throws ConfigError
  std::function<std::optional<std::string>(const Options&)> get;  // nothing: not set
};

template <typename Options>
using OptionTable = std::vector<OptionSpec<Options>>;

namespace internal {
template <typename T>
struct Inner {
  using type = T;
};
template <typename T>
struct Inner<std::optional<T>> {
  using type = T;
};
template <typename T>
using InnerOf = typename Inner<T>::type;

template <typename Options, typename Field>
auto getter(Field Options::*field, std::function<std::string(const InnerOf<Field>&)> write) {
  return [field, write](const Options& options) -> std::optional<std::string> {
    if constexpr (std::is_same_v<Field, InnerOf<Field>>) {
      return write(options.*field);
    } else {
      if (!(options.*field)) return std::nullopt;
      return write(*(options.*field));
    }
  };
}
}  // namespace internal

// The words of an enumeration, in the order of its enumerators, come from `words(E)` beside each one.
template <typename E>
std::string_view to_string(E value) {
  return words(E{})[static_cast<size_t>(value)];
}

// A whole number or a real one, by the field's type; within [least, most].
template <typename Options, typename Field>
OptionSpec<Options> number(std::string name, std::string value, std::string help, Field Options::*field,
                           internal::InnerOf<Field> least, internal::InnerOf<Field> most) {
  using T = internal::InnerOf<Field>;
  OptionSpec<Options> spec{{.name = name, .value = std::move(value), .help = std::move(help)}, {}, {}};
  spec.set = [=](Options& options, const std::string& text) {
    if constexpr (std::is_floating_point_v<T>) {
      options.*field = read_number(name, text, least, most);
    } else {
      options.*field = static_cast<T>(read_whole(name, text, least, most));
    }
  };
  spec.get = internal::getter(field, [](const T& held) {
    if constexpr (std::is_floating_point_v<T>) return write_number(held);
    return std::to_string(held);
  });
  return spec;
}

// One word of an enumeration. `also` tells help of forms beyond the words; `refused` ones are answered.
template <typename Options, typename Field>
OptionSpec<Options> word(std::string name, std::string help, Field Options::*field,
                         std::initializer_list<Refused> refused = {}) {
  using E = internal::InnerOf<Field>;
  OptionSpec<Options> spec{{.name = name, .value = {}, .help = std::move(help), .is_text = true}, {}, {}};
  for (const auto each : words(E{})) spec.value += cat(spec.value.empty() ? "" : "|", each);
  spec.set = [name, field, refused = std::vector<Refused>(refused)](Options& options, const std::string& text) {
    options.*field = static_cast<E>(read_word(name, text, words(E{}), refused));
  };
  spec.get = internal::getter(field, [](const E& held) { return std::string(to_string(held)); });
  return spec;
}

// The option, which may be given without a value, and then has this one.
template <typename Options>
OptionSpec<Options> bare_is(std::string value, OptionSpec<Options> spec) {
  spec.form = OptionForm::kOptionalValue;
  spec.set = [value = std::move(value), set = spec.set](Options& options, const std::string& given) {
    set(options, given.empty() ? value : given);
  };
  return spec;
}

// Any text but the empty one: paths, names.
template <typename Options, typename Field>
OptionSpec<Options> text(std::string name, std::string value, std::string help, Field Options::*field) {
  OptionSpec<Options> spec{{.name = name, .value = std::move(value), .help = std::move(help), .is_text = true}, {}, {}};
  spec.set = [name, field](Options& options, const std::string& given) {
    if (given.empty()) throw ConfigError("--", name, ": expected a value that is not empty");
    options.*field = given;
  };
  spec.get = [field](const Options& options) -> std::optional<std::string> {
    if ((options.*field).empty()) return std::nullopt;
    return options.*field;
  };
  return spec;
}

// on | off.
template <typename Options>
OptionSpec<Options> toggle(std::string name, std::string help, bool Options::*field) {
  OptionSpec<Options> spec{{.name = name, .value = "on|off", .help = std::move(help), .is_text = true}, {}, {}};
  spec.set = [name, field](Options& options, const std::string& given) { options.*field = read_switch(name, given); };
  spec.get = [field](const Options& options) { return options.*field ? "on" : "off"; };
  return spec;
}

// There or not.
template <typename Options>
OptionSpec<Options> flag(std::string name, std::string help, bool Options::*field) {
  OptionSpec<Options> spec = toggle(std::move(name), std::move(help), field);
  spec.form = OptionForm::kFlag;
  spec.value.clear();
  spec.is_text = false;
  spec.get = [field](const Options& options) { return options.*field ? "true" : "false"; };
  return spec;
}

// A table in sections: all rows of a section get its title.
template <typename Options>
void add_section(OptionTable<Options>& table, const std::string& title, OptionTable<Options> rows) {
  for (auto& row : rows) {
    row.group = title;
    table.push_back(std::move(row));
  }
}

}  // namespace lockstep::config
