#include "lockstep/config/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace lockstep::config {
namespace {

// The whole of `text` as a T; false if there is anything else in it.
template <typename T>
bool read_all(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Whether two words differ in nothing but capital letters.
bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [lower](char x, char y) { return lower(x) == lower(y); });
}

// Whether one of the two begins with the other, and with enough of it to be no accident: "evaluate" and "eval",
// "--batch" and "--batch-size".
bool begins_alike(std::string_view a, std::string_view b) {
  constexpr size_t kLeastLetters = 4;
  const std::string_view shorter = a.size() < b.size() ? a : b, longer = a.size() < b.size() ? b : a;
  const size_t letters = shorter.size() - std::min(shorter.find_first_not_of('-'), shorter.size());
  return letters >= kLeastLetters && longer.starts_with(shorter);
}

template <typename Text>
std::string list(std::span<const Text> words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 < words.size() ? ", " : " or ";
    out += words[i];
  }
  return out;
}

template <typename Text>
std::string join(std::span<const Text> words, std::string_view between) {
  std::string out;
  for (const auto& word : words) out += cat(out.empty() ? "" : between, word);
  return out;
}

}  // namespace

int64_t read_whole(std::string_view name, std::string_view text, int64_t least, int64_t most) {
  int64_t value = 0;
  if (!read_all(text, value) || value < least || value > most) {
    throw ConfigError("--", name, " ", text, ": expected a whole number from ", least, " to ", most);
  }
  return value;
}

double read_number(std::string_view name, std::string_view text, double least, double most) {
  double value = 0;
  if (!read_all(text, value) || !std::isfinite(value) || value < least || value > most) {
    throw ConfigError("--", name, " ", text, ": expected a number from ", write_number(least), " to ",
                      write_number(most));
  }
  return value;
}

bool read_switch(std::string_view name, std::string_view text) {
  if (text == "on" || text == "true") return true;
  if (text == "off" || text == "false") return false;
  throw ConfigError("--", name, " ", text, ": expected on or off");
}

size_t read_word(std::string_view name, std::string_view text, std::span<const std::string_view> words,
                 std::span<const Refused> refused) {
  std::vector<std::string_view> allowed(words.begin(), words.end());
  for (const auto& [word, answer] : refused) {
    if (word == text) throw ConfigError("--", name, " ", text, ": ", answer);
    std::erase(allowed, word);
  }
  auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) {
    found =
        std::find_if(words.begin(), words.end(), [text](std::string_view word) { return same_letters(word, text); });
  }
  if (found == words.end()) {
    const std::vector<std::string> candidates(allowed.begin(), allowed.end());
    constexpr size_t kAtAGlance = 4;  // words, among which nobody searches
    const std::string near = candidates.size() > kAtAGlance ? did_you_mean(text, candidates) : "";
    throw ConfigError("--", name, " ", text, ": expected ", either(allowed), near);
  }
  return static_cast<size_t>(found - words.begin());
}

std::string joined(std::span<const std::string_view> words, std::string_view between) { return join(words, between); }
std::string joined(std::span<const std::string> words, std::string_view between) { return join(words, between); }

std::string either(std::span<const std::string_view> words) { return list(words); }
std::string either(std::span<const std::string> words) { return list(words); }

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  std::string near = nearest(word, candidates);
  const auto alike = std::find_if(candidates.begin(), candidates.end(),
                                  [word](const std::string& each) { return begins_alike(word, each); });
  if (near.empty() && alike != candidates.end()) near = *alike;
  return near.empty() ? "" : cat("; did you mean ", near, "?");
}

}  // namespace lockstep::config
