// Rules: settings for whatever a pattern matches. On the command line "encoder.*: lr_scale=0.1, weight_decay=0; *.bias:
// weight_decay=0"; in a TOML file an array of tables, each with its key "match".
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockstep::config {

struct Rule {
  std::string match;
  std::vector<std::pair<std::string, std::string>> settings;  // names and values, in their order
  bool operator==(const Rule&) const = default;
};

// Reads the value of the option `name`. Throws ConfigError for a rule without a pattern or settings, a setting without
// name or value, and one that a rule has twice.
std::vector<Rule> read_rules(const std::string& name, const std::string& text);
std::string write_rules(const std::vector<Rule>& rules);

}  // namespace lockstep::config
