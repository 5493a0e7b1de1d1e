#include "lockstep/optim/group_rates.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/optim/parameter_groups.h"

namespace lockstep::optim {
namespace {

const GroupOptions& options_of(const torch::optim::OptimizerParamGroup& group) {
  return static_cast<const GroupOptions&>(group.options());
}

// The rate with which a schedule began, if the checkpoint has it.
std::optional<double> initial_rate(const NamedOptions& options) {
  for (const NamedOption& option : options) {
    double rate = 0;
    if (option.name != "initial_lr") continue;
    read_value("a parameter group", option, rate);
    return rate;
  }
  return std::nullopt;
}

std::vector<double> rates_in(const OptimizerState& state, const std::vector<GroupOptions*>& groups) {
  std::vector<double> first, now;
  for (size_t g = 0; g < groups.size(); ++g) {
    now.push_back(groups[g]->get_lr());
    if (const auto rate = initial_rate(state.groups[g].options)) first.push_back(*rate);
  }
  return first.size() == now.size() ? first : now;
}

bool all_equal(const std::vector<double>& rates) {
  return std::all_of(rates.begin(), rates.end(), [&](double rate) { return rate == rates[0]; });
}

}  // namespace

std::optional<double> common_rate(const ParamGroups& groups) {
  std::optional<double> by_scale;
  std::vector<double> rates;
  for (const auto& group : groups) {
    const GroupOptions& options = options_of(group);
    rates.push_back(options.get_lr());
    const double scale = options.lr_scale.value_or(0);
    if (scale == 1) return options.get_lr();
    if (scale > 0 && !by_scale) by_scale = options.get_lr() / scale;
  }
  if (by_scale) return by_scale;
  return all_equal(rates) ? std::optional(rates[0]) : std::nullopt;
}

void complete_scales(std::string_view owner, ParamGroups& groups, double rate) {
  for (auto& group : groups) {
    auto& options = static_cast<GroupOptions&>(group.options());
    if (options.lr_scale) continue;
    const double own = options.get_lr();
    if (rate == 0 && own != 0) {
      throw ConfigError(owner, ": a group's rate is ", own, " where the optimizer's is 0; give its lr_scale");
    }
    options.lr_scale = own == rate ? 1 : own / rate;
  }
}

void refuse_rates(std::string_view owner, const ParamGroups& groups) {
  const double first = groups[0].options().get_lr();
  const auto other =
      std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.options().get_lr() != first; });
  throw ConfigError(
      owner, ": its groups have rates ", first, " and ", other->options().get_lr(),
      ", and it has none of its own to which they could keep their ratio; give it options with a rate, or "
      "the groups lr_scale");
}

void load_scales(const OptimizerState& state, const std::vector<GroupOptions*>& groups) {
  const auto is_set = [](const GroupOptions* group) { return group->lr_scale.has_value(); };
  if (!std::all_of(groups.begin(), groups.end(), is_set)) return;
  std::vector<std::optional<double>> saved;
  for (const GroupState& group : state.groups) {
    NamedOptions options = group.options;
    saved.push_back(take_lr_scale(options));
  }
  const auto has_scale = [](const std::optional<double>& scale) { return scale.has_value(); };
  if (std::any_of(saved.begin(), saved.end(), has_scale)) {
    for (size_t g = 0; g < groups.size(); ++g) groups[g]->lr_scale = saved[g].value_or(1);
    return;
  }
  if (groups.size() == 1) return;
  const std::vector<double> rates = rates_in(state, groups);
  double unit = rates[0];  // the rate of scale 1: that of the first group which has a rate and a scale here
  for (size_t g = groups.size(); g-- > 0 && !all_equal(rates);) {
    if (rates[g] > 0 && *groups[g]->lr_scale > 0) unit = rates[g] / *groups[g]->lr_scale;
  }
  for (size_t g = 0; g < groups.size() && unit > 0; ++g) groups[g]->lr_scale = rates[g] / unit;
}

}  // namespace lockstep::optim
