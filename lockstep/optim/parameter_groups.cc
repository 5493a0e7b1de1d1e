#include "lockstep/optim/parameter_groups.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "lockstep/base/error.h"

namespace lockstep::optim {
namespace {

struct NamedParameter {
  std::string name;
  at::Tensor value;
};

// Each parameter once, under its first name.
std::vector<NamedParameter> each_once(const torch::nn::Module& module) {
  std::vector<NamedParameter> parameters;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& item : module.named_parameters()) {
    if (seen.insert(item.value().unsafeGetTensorImpl()).second) parameters.push_back({item.key(), item.value()});
  }
  return parameters;
}

bool matches(const GroupRule& rule, const std::string& name) {
  return fnmatch(rule.match.c_str(), name.c_str(), 0) == 0;
}

// Scales, shifts and biases of normalisation and other layers.
bool is_bias_or_norm(const NamedParameter& parameter) {
  return parameter.value.dim() <= 1 || parameter.name == "bias" || parameter.name.ends_with(".bias");
}

// The names, and the patterns that people make of them: "encoder.*", "*.bias".
std::vector<std::string> likely_patterns(const std::vector<NamedParameter>& parameters) {
  std::vector<std::string> patterns;
  for (const auto& [name, value] : parameters) {
    patterns.push_back(name);
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      patterns.push_back(name.substr(0, dot) + ".*");
      patterns.push_back("*" + name.substr(dot));
    }
  }
  return patterns;
}

[[noreturn]] void throw_unused(const GroupRule& rule, const std::vector<NamedParameter>& parameters) {
  const bool taken = std::any_of(parameters.begin(), parameters.end(),
                                 [&rule](const NamedParameter& each) { return matches(rule, each.name); });
  if (taken) {
    throw ConfigError("parameter group ", rule.match, ": rules before it take all parameters that it matches; put it ",
                      "before them");
  }
  const std::string guess = nearest(rule.match, likely_patterns(parameters));
  throw ConfigError("parameter group ", rule.match, ": matches no parameter",
                    guess.empty() ? cat(", such as ", parameters.empty() ? "" : parameters.front().name)
                                  : cat("; did you mean ", guess, "?"));
}

}  // namespace

std::vector<ParameterGroup> group_parameters(const torch::nn::Module& module, const GroupingOptions& options) {
  const std::vector<NamedParameter> parameters = each_once(module);
  // Two groups of each rule, the one that decays first; those of no rule come before all others.
  std::vector<ParameterGroup> groups(2 * (options.rules.size() + 1));
  for (const NamedParameter& parameter : parameters) {
    const auto rule = std::find_if(options.rules.begin(), options.rules.end(),
                                   [&](const GroupRule& each) { return matches(each, parameter.name); });
    const bool decays = options.decay_all || !is_bias_or_norm(parameter);
    const auto number = rule == options.rules.end() ? 0 : 1 + static_cast<size_t>(rule - options.rules.begin());
    groups[2 * number + (decays ? 0 : 1)].parameters.push_back(parameter.value);
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i].decays = i % 2 == 0;
    if (i >= 2) groups[i].options = options.rules[i / 2 - 1].options;
  }
  for (size_t rule = 0; rule < options.rules.size(); ++rule) {
    const auto first = groups.begin() + static_cast<std::ptrdiff_t>(2 * (rule + 1));
    if (first[0].parameters.empty() && first[1].parameters.empty()) throw_unused(options.rules[rule], parameters);
  }
  std::erase_if(groups, [](const ParameterGroup& group) { return group.parameters.empty(); });
  return groups;
}

std::optional<double> take_lr_scale(NamedOptions& options) {
  const auto found =
      std::find_if(options.begin(), options.end(), [](const NamedOption& option) { return option.name == "lr_scale"; });
  if (found == options.end()) return std::nullopt;
  double scale = 0;
  read_value("a parameter group", *found, scale);
  if (!(scale >= 0 && std::isfinite(scale)))
    throw ConfigError("a parameter group: lr_scale is ", scale, ", not 0 or more");
  options.erase(found);
  return scale;
}

}  // namespace lockstep::optim
