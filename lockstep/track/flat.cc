#include "lockstep/track/flat.h"

#include <algorithm>

namespace lockstep::track {
namespace {

void add(const std::string& name, const Record& value, char between, std::vector<std::pair<std::string, Record>>& to) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) add(name + between + key, inner, between, to);
  } else if (value.is_array()) {
    const bool of_objects =
        std::any_of(value.begin(), value.end(), [](const Record& each) { return each.is_object(); });
    for (size_t i = 0; !of_objects && i < value.size(); ++i) {
      add(name + between + std::to_string(i), value[i], between, to);
    }
  } else {
    to.emplace_back(name, value);
  }
}

}  // namespace

std::vector<std::pair<std::string, Record>> flat(const Record& record, char between) {
  std::vector<std::pair<std::string, Record>> values;
  for (const auto& [name, value] : record.items()) add(name, value, between, values);
  return values;
}

}  // namespace lockstep::track
