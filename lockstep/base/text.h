// Text helpers for messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

namespace lockstep {

// Concatenates the parts as operator<< writes them.
template <typename... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

// The first line of a library's message, without the stack trace that may follow.
inline std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

// The shortest text that reads back as the same number.
std::string write_number(double value);

// "1.5 GiB", "312 MiB", "17 bytes".
std::string human_bytes(uint64_t bytes);

// A list of ranks for reports: "0-2, 5" for {0, 1, 2, 5}, "none" for an empty list.
std::string ranges(std::span<const int> ascending);
// The same with its noun: "rank 3", "ranks 1-3, 5".
std::string named_ranks(std::span<const int> ascending);

// "a, b, c, …": text_of() each of the first `most` items, and whether there are more.
template <typename Items, typename TextOf>
std::string first_few(const Items& items, size_t most, const TextOf& text_of) {
  std::string text;
  for (size_t i = 0; i < std::min(most, items.size()); ++i) text += cat(i == 0 ? "" : ", ", text_of(items[i]));
  return items.size() > most ? text + ", …" : text;
}

// The candidate nearest to `word` by edit distance; empty if none is near enough for `word` to be a likely misspelling.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace lockstep
