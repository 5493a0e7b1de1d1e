// Text helpers: build a line out of parts, name things for people.
#pragma once

#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

namespace lockstep {

// The parts one after the other, as operator<< writes them.
template <typename... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

// Libraries' messages go on with a stack trace.
inline std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

// "1.5 GiB", "312 MiB", "17 bytes".
std::string human_bytes(uint64_t bytes);

// "0-2, 5" for {0, 1, 2, 5}: ranks as reports list them; "none" for an empty list.
std::string ranges(std::span<const int> ascending);

// The candidate nearest to `word` by edit distance; empty if none is near enough to be a likely slip of the hand.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace lockstep
