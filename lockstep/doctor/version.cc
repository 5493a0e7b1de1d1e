#include "lockstep/doctor/version.h"

#include <charconv>

#include "lockstep/base/text.h"

namespace lockstep::doctor {
namespace {

// Removes a number from the start of `text` and returns it; -1 if there is none.
int take_number(std::string_view& text) {
  int value = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc()) return -1;
  text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
  return value;
}

bool take_dot(std::string_view& text) {
  if (text.empty() || text[0] != '.') return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string Version::text() const { return cat(major, '.', minor, patch >= 0 ? cat('.', patch) : ""); }

std::optional<Version> find_version(std::string_view text) {
  while (!text.empty()) {
    const size_t digit = text.find_first_of("0123456789");
    if (digit == std::string_view::npos) return std::nullopt;
    text.remove_prefix(digit);
    Version version;
    version.major = take_number(text);
    if (version.major < 0) return std::nullopt;  // more digits than a version has
    if (!take_dot(text)) continue;
    version.minor = take_number(text);
    if (version.minor < 0) continue;
    if (take_dot(text)) version.patch = take_number(text);
    return version;
  }
  return std::nullopt;
}

Version cuda_version(int number) { return {.major = number / 1000, .minor = number % 1000 / 10}; }

}  // namespace lockstep::doctor
