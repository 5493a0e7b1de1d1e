// Version numbers of libraries.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::doctor {

struct Version {
  int major = 0, minor = 0, patch = -1;  // patch -1: not known

  auto operator<=>(const Version&) const = default;
  std::string text() const;  // "13.0", "2.11.0"
};

// The first "12.4" or "2.11.0" in a text; nothing if there is none.
std::optional<Version> find_version(std::string_view text);

// Decodes a number of CUDA's runtime or driver: 13000 is 13.0, 12040 is 12.4.
Version cuda_version(int number);

}  // namespace lockstep::doctor
