// The environment variables of one launcher, and which of them were there.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous {

constexpr int kMostRanks = 1 << 20;

// Looks a variable up; nothing if it is unset.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

// A variable that was there, and its value.
struct Reading {
  std::string name, value;
  bool operator==(const Reading&) const = default;
};

// Remembers what was read. Empty counts as unset.
class Variables {
 public:
  explicit Variables(const Lookup& lookup) : lookup_(lookup) {}

  std::string text(const char* name);
  bool has(const char* name) { return !text(name).empty(); }
  // Throws ConfigError unless the value is a whole number in [least, most].
  std::optional<int> number(const char* name, int least, int most);

  const std::vector<Reading>& readings() const { return readings_; }

 private:
  const Lookup& lookup_;
  std::vector<Reading> readings_;  // each once, in the order in which they were asked for
};

}  // namespace lockstep::rendezvous
