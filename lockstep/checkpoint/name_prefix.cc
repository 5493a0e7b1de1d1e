#include "lockstep/checkpoint/name_prefix.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/printable.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kWrappers[] = {"module.", "_orig_mod."};

}  // namespace

std::string wrappers_prefix(const std::vector<std::string>& file, const std::vector<std::string>& model) {
  std::string prefix;
  const auto adds = [&](std::string_view wrapper) {
    const std::string longer = prefix + std::string(wrapper);
    return std::all_of(file.begin(), file.end(), [&](const auto& name) { return name.starts_with(longer); }) &&
           std::none_of(model.begin(), model.end(), [&](const auto& name) { return name.starts_with(wrapper); });
  };
  if (file.empty()) return prefix;
  for (;;) {
    const auto* const next = std::find_if(std::begin(kWrappers), std::end(kWrappers), adds);
    if (next == std::end(kWrappers)) return prefix;
    prefix += *next;
  }
}

std::string without_prefix(const std::string& name, std::string_view prefix) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

Dict without_prefix(const Dict& state, const std::string& prefix, const std::string& file) {
  Dict stripped;
  bool found = prefix.empty();
  for (const auto& [key, value] : state) {
    const std::string name = key_text(key), rest = without_prefix(name, prefix);
    found |= name.starts_with(prefix);
    if (stripped.contains(rest)) {
      throw ConfigError(file, ": without ", printable(prefix), " two names become ", printable(rest));
    }
    stripped.set(rest, value);
  }
  if (!found) {
    const std::string first = state.empty() ? "" : key_text(state.begin()->key);
    throw ConfigError(file, ": no name begins with ", printable(prefix), "; the first is ", printable(first));
  }
  return stripped;
}

std::string prefix_text(const std::string& prefix) {
  return prefix.empty() ? "" : cat("the names without ", printable(prefix));
}

}  // namespace lockstep::checkpoint
