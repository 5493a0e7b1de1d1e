// The words of an enumeration: one table of {value, word} pairs stands beside each enumeration,
//   constexpr auto words(Colour) { return std::to_array<config::Word<Colour>>({{Colour::kRed, "red"}}); }
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/config/values.h"

namespace lockstep::config {

template <typename E>
struct Word {
  E value;
  std::string_view word;
};

// Returns the word of a value. Throws BugError for a value that the table lacks.
template <typename E>
std::string word_of(E value) {
  for (const auto& each : words(E{})) {
    if (each.value == value) return std::string(each.word);
  }
  throw BugError("a value of an enumeration has no word");
}

template <typename E>
std::vector<std::string_view> word_list() {
  std::vector<std::string_view> list;
  for (const auto& each : words(E{})) list.push_back(each.word);
  return list;
}

// Reads the value of the option `name`. Throws ConfigError("--name text: expected …").
template <typename E>
E read_enum(std::string_view name, std::string_view text, std::span<const Refused> refused = {}) {
  const auto list = word_list<E>();
  return words(E{})[read_word(name, text, list, refused)].value;
}

}  // namespace lockstep::config
