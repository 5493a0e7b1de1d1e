// The rates of an optimizer's groups. Each is the group's scale (GroupOptions::lr_scale) times one rate for all, which
// a schedule changes.
#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/optim/group_options.h"
#include "lockstep/optim/state.h"

namespace lockstep::optim {

using ParamGroups = std::vector<torch::optim::OptimizerParamGroup>;

// The rate for all groups: by the groups that have a scale or, if none has, the rate that all groups have. Nothing if
// their rates differ.
std::optional<double> common_rate(const ParamGroups& groups);

// Gives each group without a scale the ratio of its rate to `rate`. Throws ConfigError that begins with `owner` where
// that is 0 and the group's is not.
void complete_scales(std::string_view owner, ParamGroups& groups, double rate);

// Throws ConfigError that begins with `owner`: the groups have no rate in common.
[[noreturn]] void refuse_rates(std::string_view owner, const ParamGroups& groups);

// Sets the scales of `groups`, which have the rates of `state` already, to those of a checkpoint. PyTorch's has none:
// then the ratios are those of the rates with which its schedulers began ("initial_lr") or, without them, of its rates.
// Groups whose scales are not set keep them so. Throws ConfigError for a scale that is no number of 0 or more.
void load_scales(const OptimizerState& state, const std::vector<GroupOptions*>& groups);

}  // namespace lockstep::optim
