// A module's parameters in groups with options of their own, as torch.optim's param_groups:
//
//   auto groups = optim::group_parameters(*net, {.rules = {{"encoder.*", {{"lr_scale", 0.1}}}}, .decay_all = false});
//   auto optimizer = optim::make_optimizer("adamw", groups, {{"lr", 1e-3}, {"weight_decay", 0.05}});
//
// set_lr() keeps the rates' ratios: a group's rate is `lr_scale` times the optimizer's.
#pragma once

#include <torch/nn/module.h>

#include <optional>
#include <string>
#include <vector>

#include "lockstep/optim/group_options.h"
#include "lockstep/optim/named_options.h"

namespace lockstep::optim {

// Parameters with options that differ from the optimizer's: {biases, {{"weight_decay", 0.0}}}. The option "lr_scale" is
// the ratio of the group's rate to the optimizer's.
struct ParameterGroup {
  std::vector<at::Tensor> parameters;
  NamedOptions options = {};
  bool decays = true;  // false: no weight decay and, with LARS and LAMB, no ratio, where `options` don't say otherwise
};

struct GroupRule {
  std::string match;  // of parameters' names: * stands for any letters, dots included, ? for one, [ab] for a or b
  NamedOptions options;
};

struct GroupingOptions {
  std::vector<GroupRule> rules = {};  // the first that matches a name counts
  bool decay_all = true;              // false: see ParameterGroup::decays, for biases and parameters of one dimension
};

// The module's parameters in groups: first those that no rule matches, then those of each rule, and of each of these
// first the ones that decay. A group without parameters is left out. Throws ConfigError for a rule that no parameter is
// left for, with the pattern that was probably meant.
std::vector<ParameterGroup> group_parameters(const torch::nn::Module& module, const GroupingOptions& options);

// Takes "lr_scale" out of the options. Throws ConfigError for one that is no number of 0 or more.
std::optional<double> take_lr_scale(NamedOptions& options);

// The groups for the constructor of an optimizer with options `Options`. Throws ConfigError as read_options().
template <typename Options>
std::vector<torch::optim::OptimizerParamGroup> param_groups(const std::vector<ParameterGroup>& groups,
                                                            const Options& defaults) {
  std::vector<torch::optim::OptimizerParamGroup> made;
  for (const ParameterGroup& group : groups) {
    Options options = defaults;
    if (!group.decays) {
      options.weight_decay = 0;
      if constexpr (requires { options.adapt; }) options.adapt = false;
      if constexpr (requires { options.use_nvlamb; }) options.use_nvlamb = false;
    }
    NamedOptions own = group.options;
    const std::optional<double> lr_scale = take_lr_scale(own);
    options.lr *= lr_scale.value_or(1);
    read_options(own, options);
    made.push_back(param_group(group.parameters, options, lr_scale));
  }
  return made;
}

}  // namespace lockstep::optim
