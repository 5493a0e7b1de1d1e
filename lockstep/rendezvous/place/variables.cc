#include "lockstep/rendezvous/place/variables.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/place/address.h"

namespace lockstep::rendezvous {

std::string Variables::text(const char* name) {
  const std::string value = lookup_(name).value_or("");
  Reading reading{name, value};
  const bool is_known = std::find(readings_.begin(), readings_.end(), reading) != readings_.end();
  if (!value.empty() && !is_known) readings_.push_back(std::move(reading));
  return value;
}

std::optional<int> Variables::number(const char* name, int least, int most) {
  const std::string value = text(name);
  if (value.empty()) return std::nullopt;
  const auto parsed = parse_number(value);
  if (!parsed || *parsed < least || *parsed > most) {
    throw ConfigError("environment variable ", name, "=", value, ": expected a whole number from ", least, " to ",
                      most);
  }
  return static_cast<int>(*parsed);
}

}  // namespace lockstep::rendezvous
