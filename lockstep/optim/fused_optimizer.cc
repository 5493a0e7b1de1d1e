#include "lockstep/optim/fused_optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <typeinfo>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/optim/kernels.h"
#include "lockstep/optim/memory_order.h"
#include "lockstep/optim/positions.h"

namespace lockstep::optim {
namespace {

void check_parameter(std::string_view optimizer, const at::Tensor& parameter) {
  const bool reachable = parameter.is_cpu() || parameter.is_cuda();
  if (!reachable || !parameter.is_non_overlapping_and_dense() || !at::isFloatingType(parameter.scalar_type())) {
    throw ConfigError(optimizer, ": a parameter of shape ", parameter.sizes(), " is ", parameter.toString(),
                      " with strides ", parameter.strides(),
                      "; it must be a floating-point tensor without gaps, of the CPU or a GPU");
  }
}

}  // namespace

FusedOptimizer::FusedOptimizer(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                               std::unique_ptr<GroupOptions> defaults)
    : Optimizer(groups, std::move(defaults)) {
  size_t parameters = 0;
  for (const auto& group : param_groups_) {
    options_of(group).check();
    parameters += group.params().size();
  }
  if (parameters == 0) throw ConfigError("the optimizer has no parameters");
}

void FusedOptimizer::update(const Update& update) {
  if (update.grad_multiplier < 0) throw BugError("gradients multiplied by ", update.grad_multiplier);
  if (!(update.clip_value >= 0)) throw BugError("gradients clipped to ", update.clip_value);
  at::NoGradGuard no_grad;
  size_t number = 0;
  for (size_t g = 0; g < param_groups_.size(); ++g) {
    const GroupOptions& options = options_of(param_groups_[g]);
    const std::vector<at::Tensor>& parameters = param_groups_[g].params();
    for (size_t p = 0; p < parameters.size(); ++p, ++number) {
      if (averages_) check_parameter(name(), parameters[p]);
      const double share = averages_ ? averages_->prepare(number, parameters[p]) : 1;
      const at::Tensor* average = averages_ ? &averages_->all()[number] : nullptr;
      if (!parameters[p].grad().defined()) {
        if (average != nullptr) average_parameter(parameters[p], *average, share);
        continue;
      }
      Slots& state = ready_slots(g, p);
      const at::Tensor gradient = gradient_for(name(), parameters[p]);
      step_one(options,
               {parameters[p],
                gradient,
                update.grad_multiplier,
                average,
                {.clip = update.clip_value, .average_share = share}},
               state);
      parameters[p].unsafeGetTensorImpl()->bump_version();  // a graph that saved the old weight must notice
    }
  }
}

at::Tensor FusedOptimizer::step(LossClosure closure) {
  at::Tensor loss;
  if (closure) {
    at::AutoGradMode enable_grad(true);
    loss = closure();
  }
  update({});
  return loss;
}

void FusedOptimizer::set_lr(double lr) {
  for (auto& group : param_groups_) group.options().set_lr(lr);
}

double FusedOptimizer::lr() const { return param_groups_.front().options().get_lr(); }

OptimizerState FusedOptimizer::state_dict() const {
  OptimizerState state;
  int64_t index = 0;
  for (size_t g = 0; g < param_groups_.size(); ++g) {
    const GroupOptions& options = options_of(param_groups_[g]);
    const std::span<const SlotSpec> specs = slots(options);
    GroupState& group = state.groups.emplace_back(GroupState{.options = options.to_pytorch(), .parameters = {}});
    for (size_t p = 0; p < param_groups_[g].params().size(); ++p, ++index) {
      group.parameters.push_back(index);
      if (g >= slots_.size() || p >= slots_[g].size()) continue;
      ParameterState of{.index = index, .tensors = {}};
      for (size_t s = 0; s < specs.size(); ++s) {
        if (slots_[g][p][s].defined()) of.tensors.push_back({specs[s].name, slots_[g][p][s]});
      }
      if (!of.tensors.empty()) state.parameters.push_back(std::move(of));
    }
  }
  return state;
}

void FusedOptimizer::load_state_dict(const OptimizerState& state, std::span<const std::string> names) {
  const PositionMap positions = match_groups(name(), state, param_groups_);
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> options;
  std::vector<std::vector<Slots>> loaded(param_groups_.size());
  for (size_t g = 0; g < param_groups_.size(); ++g) {
    options.push_back(options_of(param_groups_[g]).clone());
    static_cast<GroupOptions&>(*options[g]).from_pytorch(state.groups[g].options);
    loaded[g].resize(param_groups_[g].params().size());
  }
  for (const ParameterState& of : state.parameters) {
    const Position at = find_position(name(), positions, of.index);
    const at::Tensor& parameter = param_groups_[at.group].params()[at.place];
    const std::span<const SlotSpec> specs = slots(static_cast<const GroupOptions&>(*options[at.group]));
    const std::string label = cat(name(), ": state of ", parameter_name(names, at.number));
    loaded[at.group][at.place] = load_slots(label, specs, parameter, of);
  }
  for (size_t g = 0; g < param_groups_.size(); ++g) param_groups_[g].set_options(std::move(options[g]));
  slots_ = std::move(loaded);
}

void FusedOptimizer::keep_average(double decay) { averages_.emplace(decay, all_parameters().size()); }

std::vector<at::Tensor> FusedOptimizer::averages() const {
  return averages_ ? averages_->all() : std::vector<at::Tensor>();
}

void FusedOptimizer::load_averages(const std::vector<at::Tensor>& averages) {
  if (!averages_) throw ConfigError(name(), ": averages of the weights are given, and none are kept");
  averages_->load(name(), all_parameters(), averages);
}

void FusedOptimizer::exchange_averages() {
  if (averages_) averages_->exchange(all_parameters());
}

std::vector<at::Tensor> FusedOptimizer::all_parameters() const {
  std::vector<at::Tensor> all;
  for (const auto& group : param_groups_) all.insert(all.end(), group.params().begin(), group.params().end());
  return all;
}

std::vector<torch::optim::OptimizerParamGroup> FusedOptimizer::groups_over(
    const std::vector<std::vector<at::Tensor>>& parameters) const {
  if (parameters.size() != param_groups_.size()) {
    throw BugError(name(), ": ", param_groups_.size(), " groups made over ", parameters.size());
  }
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (size_t g = 0; g < parameters.size(); ++g) {
    groups.emplace_back(parameters[g], options_of(param_groups_[g]).clone());
  }
  return groups;
}

bool FusedOptimizer::counts_steps(std::string_view state) const {
  const std::span<const SlotSpec> specs = slots(static_cast<const GroupOptions&>(*defaults_));
  return std::any_of(specs.begin(), specs.end(),
                     [&](const SlotSpec& spec) { return spec.counter && state == spec.name; });
}

void FusedOptimizer::prepare_all() {
  at::NoGradGuard no_grad;
  for (size_t g = 0; g < param_groups_.size(); ++g) {
    for (size_t p = 0; p < param_groups_[g].params().size(); ++p) ready_slots(g, p);
  }
}

const GroupOptions& FusedOptimizer::options_of(const torch::optim::OptimizerParamGroup& group) const {
  const auto* options = dynamic_cast<const GroupOptions*>(&group.options());
  const torch::optim::OptimizerOptions& expected = *defaults_;
  if (options == nullptr || typeid(*options) != typeid(expected)) {
    throw ConfigError("the options of a parameter group are not of the optimizer's type: make it with param_group()");
  }
  return *options;
}

// The state of a parameter, complete and laid out as the parameter is now (its memory format may have been changed).
Slots& FusedOptimizer::ready_slots(size_t group, size_t position) {
  const std::vector<at::Tensor>& parameters = param_groups_[group].params();
  const at::Tensor& parameter = parameters[position];
  check_parameter(name(), parameter);
  if (slots_.size() <= group) slots_.resize(param_groups_.size());
  if (slots_[group].size() <= position) slots_[group].resize(parameters.size());
  Slots& state = slots_[group][position];
  const GroupOptions& options = options_of(param_groups_[group]);
  prepare(options, parameter, state);
  const std::span<const SlotSpec> specs = slots(options);
  for (size_t s = 0; s < specs.size(); ++s) {
    if (!specs[s].counter && state[s].defined()) state[s] = laid_out_as(parameter, state[s]);
  }
  return state;
}

}  // namespace lockstep::optim
