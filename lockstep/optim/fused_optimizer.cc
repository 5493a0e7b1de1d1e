#include "lockstep/optim/fused_optimizer.h"

#include <ATen/ATen.h>

#include <typeinfo>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/optim/memory_order.h"
#include "lockstep/optim/positions.h"

namespace lockstep::optim {
namespace {

// The pass runs over raw memory.
void check_parameter(std::string_view optimizer, const at::Tensor& parameter) {
  if (!parameter.is_cpu() || !parameter.is_non_overlapping_and_dense() ||
      !at::isFloatingType(parameter.scalar_type())) {
    throw ConfigError(optimizer, ": a parameter of shape ", parameter.sizes(), " is ", parameter.toString(),
                      " with strides ", parameter.strides(),
                      "; it must be a floating-point tensor in CPU memory without gaps");
  }
}

at::Tensor gradient_for(std::string_view optimizer, const at::Tensor& parameter) {
  const at::Tensor& gradient = parameter.grad();
  if (gradient.layout() != at::kStrided) {
    throw ConfigError(optimizer, ": a parameter of shape ", parameter.sizes(), " has a gradient of layout ",
                      gradient.layout(), "; only dense ones can be taken");
  }
  return laid_out_as(parameter, gradient);
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
  at::NoGradGuard no_grad;
  for (size_t g = 0; g < param_groups_.size(); ++g) {
    const GroupOptions& options = options_of(param_groups_[g]);
    const std::vector<at::Tensor>& parameters = param_groups_[g].params();
    for (size_t p = 0; p < parameters.size(); ++p) {
      if (!parameters[p].grad().defined()) continue;
      Slots& state = ready_slots(g, p);
      step_one(options, parameters[p], gradient_for(name(), parameters[p]), update.grad_multiplier, state);
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
