#include "lockstep/checkpoint/name_prefix.h"

#include <algorithm>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/printable.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kWrappers[] = {"module.", "_orig_mod."};

}  // namespace

std::string wrappers_prefix(std::vector<std::string> file, const std::vector<std::string>& model) {
  std::erase(file, kAverageCount);
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

std::string prefix_before(const std::vector<std::string>& model, const std::vector<std::string>& file) {
  if (model.empty()) return "";
  const std::set<std::string> names(file.begin(), file.end());
  for (const std::string& name : file) {
    if (name.size() <= model[0].size() || !name.ends_with("." + model[0])) continue;
    const std::string prefix = name.substr(0, name.size() - model[0].size());
    if (std::ranges::all_of(model, [&](const std::string& each) { return names.contains(prefix + each); })) {
      return prefix;
    }
  }
  return "";
}

std::string without_prefix(const std::string& name, std::string_view prefix) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

StrippedState without_prefix(const Dict& state, const std::string& prefix, const std::string& file) {
  StrippedState stripped;
  for (const auto& [key, value] : state) {
    const std::string name = key_text(key);
    if (name.starts_with(prefix) && name.size() > prefix.size()) {
      stripped.state.set(without_prefix(name, prefix), value);
    } else {
      stripped.left_out.push_back(name);
    }
  }
  if (stripped.state.empty() && !prefix.empty()) {
    const std::string first = state.empty() ? "" : key_text(state.begin()->key);
    throw ConfigError(file, ": no name begins with ", printable(prefix), "; the first is ", printable(first));
  }
  const auto goes_on = [](const auto& entry) { return key_text(entry.key).starts_with('.'); };
  if (!prefix.empty() && std::all_of(stripped.state.begin(), stripped.state.end(), goes_on)) {
    throw ConfigError(file, ": all names that begin with ", printable(prefix), " go on with a point; give ",
                      printable(prefix), '.');
  }
  return stripped;
}

std::string prefix_text(const std::string& prefix, size_t left_out) {
  if (prefix.empty()) return "";
  const std::string others =
      left_out == 0 ? "" : cat(", ", left_out, left_out == 1 ? " other" : " others", " left out");
  return cat("the names without ", printable(prefix), others);
}

}  // namespace lockstep::checkpoint
