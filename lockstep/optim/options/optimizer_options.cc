#include "lockstep/optim/options/optimizer_options.h"

#include <algorithm>
#include <vector>

namespace lockstep::optim {
namespace {

std::vector<std::string_view> names_of(bool OptimizerTraits::*has) {
  std::vector<std::string_view> names;
  for (const auto& each : kOptimizers) {
    if (has == nullptr || each.*has) names.push_back(each.name);
  }
  return names;
}

void require(std::string_view option, std::string_view name, bool OptimizerTraits::*has) {
  const auto names = names_of(has);
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw ConfigError("--", option, " goes with --optimizer ", config::either(names), " only; leave one of them out");
}

}  // namespace

void OptimizerOptions::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.section("Optimizer");
  options.choice("optimizer", "", &name, names_of(nullptr), kIdentity);
  options.number("momentum", "X", cat("of ", config::joined(names_of(&OptimizerTraits::momentum), ", ")), &momentum, 0,
                 0.999999, kTrajectory);
  options.flag("nesterov", "Nesterov's momentum", &nesterov, kTrajectory);
  options.number("weight-decay", "X", "L2 penalty, or decoupled, as the optimizer has it", &weight_decay, 0, 1000,
                 kTrajectory);
  options.toggle("decay-all", "weight decay (and LARS's and LAMB's ratio) for biases and normalisation, too",
                 &decay_all, kIdentity);
  options.rules("param-groups", "lr, lr_scale, weight_decay … of parameters by name; [[param-groups]] in files",
                &param_groups, kIdentity);
  options.number("clip", "X", "largest norm of the gradient (0: any)", &clip, 0, 1e12, kTrajectory);
  options.number("clip-value", "X", "largest element of the gradient (0: any)", &clip_value, 0, 1e12, kTrajectory);
  options.number("ema", "DECAY", "keep and evaluate an average of the weights (0: none)", &ema, 0, 0.99999999,
                 kIdentity);
}

void OptimizerOptions::check(std::string_view of) const {
  if (momentum) require("momentum", of, &OptimizerTraits::momentum);
  if (nesterov) require("nesterov", of, &OptimizerTraits::nesterov);
  if (nesterov && momentum == 0.0) throw ConfigError("--nesterov needs a --momentum above 0");
  for (const config::Rule& rule : param_groups) {
    const auto has = [&rule](std::string_view key) {
      return std::any_of(rule.settings.begin(), rule.settings.end(), [key](const auto& s) { return s.first == key; });
    };
    if (has("lr") && has("lr_scale")) {
      throw ConfigError("--param-groups: ", rule.match, ": has both lr and lr_scale; leave one of them out");
    }
  }
}

}  // namespace lockstep::optim
