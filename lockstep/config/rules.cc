#include "lockstep/config/rules.h"

#include <algorithm>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::config {
namespace {

constexpr const char* kExample = "as in 'encoder.*: lr_scale=0.1, weight_decay=0; *.bias: weight_decay=0'";

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\n"), last = text.find_last_not_of(" \t\n");
  return first == std::string_view::npos ? "" : std::string(text.substr(first, last - first + 1));
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(at, begin), text.size());
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

Rule read_rule(const std::string& name, const std::string& text) {
  const size_t colon = text.find(':');
  Rule rule{.match = trimmed(std::string_view(text).substr(0, colon)), .settings = {}};
  if (colon == std::string::npos || rule.match.empty()) {
    throw ConfigError("--", name, ": '", text, "': expected a pattern, a colon and settings, ", kExample);
  }
  for (const std::string& setting : split(std::string_view(text).substr(colon + 1), ',')) {
    const size_t equals = std::min(setting.find('='), setting.size());
    std::string key = trimmed(std::string_view(setting).substr(0, equals));
    std::string value = equals < setting.size() ? trimmed(std::string_view(setting).substr(equals + 1)) : "";
    if (key.empty() || value.empty()) {
      throw ConfigError("--", name, ": ", rule.match, ": '", setting, "': expected NAME=VALUE, ", kExample);
    }
    const bool twice = std::any_of(rule.settings.begin(), rule.settings.end(),
                                   [&key](const auto& other) { return other.first == key; });
    if (twice) throw ConfigError("--", name, ": ", rule.match, ": ", key, " is there twice");
    rule.settings.emplace_back(std::move(key), std::move(value));
  }
  return rule;
}

}  // namespace

std::vector<Rule> read_rules(const std::string& name, const std::string& text) {
  std::vector<Rule> rules;
  for (const std::string& each : split(text, ';')) {
    if (!each.empty()) rules.push_back(read_rule(name, each));
  }
  if (rules.empty()) throw ConfigError("--", name, ": expected rules, ", kExample);
  return rules;
}

std::string write_rules(const std::vector<Rule>& rules) {
  std::string text;
  for (const Rule& rule : rules) {
    text += cat(text.empty() ? "" : "; ", rule.match, ':');
    for (const auto& [name, value] : rule.settings) {
      text += cat(&name == &rule.settings.front().first ? " " : ", ", name, '=', value);
    }
  }
  return text;
}

}  // namespace lockstep::config
