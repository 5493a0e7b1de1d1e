// The options of a command, as its components declare them: each row is bound to a field of a live object, and the
// default is the field's value when it is declared.
//
//   struct DataOptions {
//     std::string path;
//     int workers = 0;
//     void declare(config::OptionSet& options) {
//       options.section("Data");
//       options.text("data", "DIR", "folder of the data set", &path, config::Effect::kNone);
//       options.number("workers", "N", "threads a process that load data", &workers, 0, 256, config::Effect::kNone);
//     }
//   };
#pragma once

#include <deque>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/config/option.h"
#include "lockstep/config/rules.h"
#include "lockstep/config/words.h"

namespace lockstep::config {

namespace internal {
template <typename T>
struct Inner {
  using type = T;
};
template <typename T>
struct Inner<std::optional<T>> {
  using type = T;
};
template <typename Field>
using InnerOf = typename Inner<Field>::type;
}  // namespace internal

struct GivenOption {
  std::string name;   // "batch-size"
  std::string value;  // "" for an option given without its optional value, "true" for a flag
};

// The options of one command. Fields outlive the set. A std::optional<T> field makes an option that may be unset, whose
// values are Ts. Used by one thread at a time.
class OptionSet {
 public:
  OptionSet() = default;
  OptionSet(const OptionSet&) = delete;
  OptionSet& operator=(const OptionSet&) = delete;

  // Sets the title, in help, of the rows that follow.
  void section(std::string title) { section_ = std::move(title); }

  // Adds a whole or a real number, by the field's type, in [least, most].
  template <typename Field>
  Option& number(const std::string& name, std::string value, std::string help, Field* field,
                 internal::InnerOf<Field> least, internal::InnerOf<Field> most, Effect effect);

  // Adds one word of an enumeration that has words() (words.h).
  template <typename Field>
  Option& word(const std::string& name, std::string help, Field* field, Effect effect,
               std::vector<Refused> refused = {});

  // Adds one of these names; the field is a text. `names` are literals.
  template <typename Field>
  Option& choice(const std::string& name, std::string help, Field* field, const std::vector<std::string_view>& names,
                 Effect effect, std::vector<Refused> refused = {});

  // Adds a text that is not empty, such as a path or a name. An empty field is unset.
  Option& text(const std::string& name, std::string value, std::string help, std::string* field, Effect effect);

  // Adds "on" or "off".
  Option& toggle(const std::string& name, std::string help, bool* field, Effect effect);

  // Adds a flag, which is given or not.
  Option& flag(const std::string& name, std::string help, bool* field, Effect effect);

  // Adds a value of its own form: read(name, text) returns the value or throws ConfigError, and write(value) returns a
  // text that reads back the same. `value` is the form's name in help.
  template <typename Field, typename Read, typename Write>
  Option& form(const std::string& name, std::string value, std::string help, Field* field, Read read, Write write,
               Effect effect);

  // Adds rules (rules.h), such as settings by name patterns. No rules are unset.
  Option& rules(const std::string& name, std::string help, std::vector<Rule>* field, Effect effect);

  // Adds the word that the command is about.
  void subject(const std::string& name, std::string* field, Effect effect);

  const std::deque<Option>& rows() const { return rows_; }
  const Option* find(std::string_view name) const;
  std::vector<OptionShape> shapes() const;

  // Sets the given options; ignores names that are no rows of this set. Throws ConfigError.
  void apply(std::span<const GivenOption> given);
  // Does the same and marks the options as given by the user, so that arguments() repeats them.
  void apply_as_given(std::span<const GivenOption> given);
  // Does the same with the options of a resumed run's own file, which arguments() leaves out: who reads its words
  // recalls the file as well.
  void apply_as_recalled(std::span<const GivenOption> recalled);
  void reset();

  // Returns words for the command line that read back as the same options: those that differ from their defaults and
  // are not recalled, and those that were given by the user.
  std::vector<std::string> arguments() const;

  // Returns every option that a run's bits depend on, with its value.
  Record record() const;

 private:
  Option& add(Option option);

  std::deque<Option> rows_;  // a deque, so that references to rows stay valid
  std::string section_;
};

template <typename Field, typename Read, typename Write>
Option& OptionSet::form(const std::string& name, std::string value, std::string help, Field* field, Read read,
                        Write write, Effect effect) {
  Option option;
  option.name = name;
  option.value = std::move(value);
  option.help = std::move(help);
  option.is_text = true;
  option.effect = effect;
  option.set = [name, field, read](const std::string& text) { *field = read(name, text); };
  option.get = [field, write]() -> std::optional<std::string> {
    if constexpr (std::is_same_v<Field, internal::InnerOf<Field>>) {
      return write(*field);
    } else {
      if (!*field) return std::nullopt;
      return write(**field);
    }
  };
  option.reset = [field, first = *field] { *field = first; };
  return add(std::move(option));
}

template <typename Field>
Option& OptionSet::number(const std::string& name, std::string value, std::string help, Field* field,
                          internal::InnerOf<Field> least, internal::InnerOf<Field> most, Effect effect) {
  using T = internal::InnerOf<Field>;
  const auto read = [least, most](const std::string& option, const std::string& text) {
    if constexpr (std::is_floating_point_v<T>) {
      return read_number(option, text, least, most);
    } else {
      return static_cast<T>(read_whole(option, text, least, most));
    }
  };
  const auto write = [](const T& held) {
    if constexpr (std::is_floating_point_v<T>) return write_number(held);
    return std::to_string(held);
  };
  Option& option = form(name, std::move(value), std::move(help), field, read, write, effect);
  option.is_text = false;
  return option;
}

template <typename Field>
Option& OptionSet::word(const std::string& name, std::string help, Field* field, Effect effect,
                        std::vector<Refused> refused) {
  using E = internal::InnerOf<Field>;
  const auto read = [refused = std::move(refused)](const std::string& option, const std::string& text) {
    return read_enum<E>(option, text, refused);
  };
  return form(name, joined(word_list<E>(), "|"), std::move(help), field, read, word_of<E>, effect);
}

template <typename Field>
Option& OptionSet::choice(const std::string& name, std::string help, Field* field,
                          const std::vector<std::string_view>& names, Effect effect, std::vector<Refused> refused) {
  const auto read = [names, refused = std::move(refused)](const std::string& option, const std::string& text) {
    return std::string(names[read_word(option, text, names, refused)]);
  };
  const auto write = [](const std::string& held) { return held; };
  return form(name, joined(names, "|"), std::move(help), field, read, write, effect);
}

}  // namespace lockstep::config
