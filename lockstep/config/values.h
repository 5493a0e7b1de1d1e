// Reads option values from text, with bounds, and writes them so that they read back the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::config {

// A word that is refused with an answer of its own: a likely slip, or a value that is not available here.
struct Refused {
  std::string_view word;
  std::string_view answer;
};

// Read a value of the option `name`. All throw ConfigError("--name text: expected …").
int64_t read_whole(std::string_view name, std::string_view text, int64_t least, int64_t most);
double read_number(std::string_view name, std::string_view text, double least, double most);
bool read_switch(std::string_view name, std::string_view text);  // on | off | true | false
// The index of the word, in capital or small letters, among `words`.
size_t read_word(std::string_view name, std::string_view text, std::span<const std::string_view> words,
                 std::span<const Refused> refused = {});

// "a|b|c".
std::string joined(std::span<const std::string_view> words, std::string_view between);
std::string joined(std::span<const std::string> words, std::string_view between);

// "a, b or c".
std::string either(std::span<const std::string_view> words);
std::string either(std::span<const std::string> words);

// Returns "; did you mean --epochs?", or an empty string if no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace lockstep::config
