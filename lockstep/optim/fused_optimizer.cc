#include "lockstep/optim/fused_optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <typeinfo>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/optim/each_once.h"
#include "lockstep/optim/group_rates.h"
#include "lockstep/optim/held_gradient.h"
#include "lockstep/optim/kernels/average.h"
#include "lockstep/optim/kernels/device_step.h"
#include "lockstep/optim/memory_order.h"
#include "lockstep/optim/sparse_rows.h"

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
    : Optimizer(each_once(groups), std::move(defaults)) {
  size_t parameters = 0;
  for (const auto& group : param_groups_) {
    options_of(group).check();
    parameters += group.params().size();
  }
  if (parameters == 0) throw ConfigError("the optimizer has no parameters");
  const auto rate = has_rate() ? std::optional(defaults_->get_lr()) : common_rate(param_groups_);
  if (rate) complete_scales("an optimizer", param_groups_, *rate);
}

FusedOptimizer::~FusedOptimizer() = default;

// Calls visit(position, parameter) for all, in order.
template <typename Visit>
void FusedOptimizer::for_each_parameter(const Visit& visit) const {
  size_t number = 0;
  for (size_t g = 0; g < param_groups_.size(); ++g) {
    const std::vector<at::Tensor>& parameters = param_groups_[g].params();
    for (size_t p = 0; p < parameters.size(); ++p) visit(Position{g, p, number++}, parameters[p]);
  }
}

void FusedOptimizer::update(const Update& update) {
  check_own_weights(*this, "an update");
  if (update.grad_multiplier < 0) throw BugError("gradients multiplied by ", update.grad_multiplier);
  if (!(update.clip_value >= 0)) throw BugError("gradients clipped to ", update.clip_value);
  for_each_parameter([&](const Position&, const at::Tensor& parameter) {
    if (parameter.grad().defined()) check_held(name(), parameter.grad(), update.loss_scale);
  });
  at::NoGradGuard no_grad;
  const UseHeldGradients use;
  begun_.reset();  // of an update whose end was never told
  if (update.overflow.defined()) {
    if (!takes_overflow()) throw BugError(name(), ": an update with an overflow");
    begun_.emplace(Begun{.had_stepped = has_stepped_, .states = {}});
  }
  has_stepped_ = true;
  Update own = update;
  const double factor = gradient_factor(update);
  own.grad_multiplier *= factor;
  own.clip_value *= factor;                  // it holds before the factor
  device::StepQueue queue(update.overflow);  // for parameters on GPUs
  for_each_parameter(
      [&](const Position& position, const at::Tensor& parameter) { update_one(position, parameter, own, queue); });
  queue.run();
}

bool FusedOptimizer::takes_overflow() const {
  if (!has_guarded_step() || averages_) return false;
  bool takes = true;
  for_each_parameter([&](const Position&, const at::Tensor& parameter) {
    const at::Tensor& gradient = parameter.grad();
    if (gradient.defined()) takes = takes && !gradient.is_sparse() && (!parameter.is_cpu() || as_on_gpus_);
  });
  return takes;
}

// The device has left the tensors as they were. What the host counts goes back, and state that was made goes.
void FusedOptimizer::end_update(bool overflow) {
  if (overflow && begun_) {
    has_stepped_ = begun_->had_stepped;
    for (auto& [position, state] : begun_->states) slots_[position.group][position.index] = std::move(state);
  }
  begun_.reset();
}

// A parameter's state, with copies of its numbers.
Slots FusedOptimizer::state_before(const Position& position) const {
  if (slots_.size() <= position.group || slots_[position.group].size() <= position.index) return {};
  Slots state = slots_[position.group][position.index];
  const std::span<const SlotSpec> specs = slots(options_of(param_groups_[position.group]));
  for (size_t s = 0; s < specs.size(); ++s) {
    if (specs[s].is_number() && state[s].defined()) state[s] = state[s].clone();
  }
  return state;
}

void FusedOptimizer::update_one(const Position& position, const at::Tensor& parameter, const Update& update,
                                device::StepQueue& queue) {
  const bool has_gradient = parameter.grad().defined();
  if (!has_gradient && !averages_) return;
  check_parameter(name(), parameter);
  const at::Tensor weight = stepped(position.number, parameter);
  const double share = averages_ ? averages_->prepare(position.number, weight) : 1;
  const at::Tensor* average = averages_ ? &averages_->all()[position.number] : nullptr;
  if (!has_gradient) return average_parameter(weight, *average, share);
  const auto settle = [this, number = position.number, parameter] {
    parameter.unsafeGetTensorImpl()->bump_version();  // a graph that saved the old weight must notice
    if (masters_) masters_->settle(number, parameter);
  };
  if (steps_rows(position, parameter)) {
    step_rows(position, parameter, weight, update);
    if (average != nullptr) average_parameter(weight, *average, share);
  } else {
    const bool waits = !weight.is_cpu() || as_on_gpus_;
    if (begun_) begun_->states.emplace_back(position, state_before(position));
    Slots& state = ready_slots(position, weight);
    const at::Tensor gradient = gradient_for(name(), parameter);
    step_one(options_of(param_groups_[position.group]),
             {weight,
              gradient,
              update.grad_multiplier,
              average,
              weight.is_same(parameter) ? nullptr : &parameter,
              {.clip = update.clip_value, .average_share = share},
              waits ? &queue : nullptr},
             state);
    if (waits) return queue.when_done(settle);
  }
  settle();
}

void FusedOptimizer::check_sparse(size_t group, const at::Tensor& parameter) const {
  if (!parameter.grad().is_sparse()) return;
  if (sparse_step(options_of(param_groups_[group])) != SparseStep::kRefused) return;
  throw ConfigError(name(), ": a parameter of shape ", parameter.sizes(),
                    " has a sparse gradient, which sgd and adagrad take, without weight_decay");
}

bool FusedOptimizer::steps_rows(const Position& position, const at::Tensor& parameter) const {
  check_sparse(position.group, parameter);
  return parameter.grad().is_sparse() && sparse_step(options_of(param_groups_[position.group])) == SparseStep::kRows;
}

// The rows as a parameter of their own, with the same rule.
void FusedOptimizer::step_rows(const Position& position, const at::Tensor& parameter, const at::Tensor& weight,
                               const Update& update) {
  const GroupOptions& options = options_of(param_groups_[position.group]);
  const std::span<const SlotSpec> specs = slots(options);
  const SparseRows rows(parameter.grad());
  const at::Tensor own = rows.of(weight), gradient = rows.values().to(parameter.scalar_type());
  const at::Tensor rounded = weight.is_same(parameter) ? at::Tensor() : at::empty_like(gradient);
  Slots& state = ready_slots(position, weight);
  Slots of_rows = state;
  const auto for_each_tensor = [&](const auto& visit) {
    for (size_t s = 0; s < specs.size(); ++s) {
      if (!specs[s].is_number() && state[s].defined()) visit(s);
    }
  };
  for_each_tensor([&](size_t s) { of_rows[s] = rows.of(state[s]); });
  step_one(options,
           {own,
            gradient,
            update.grad_multiplier,
            nullptr,
            rounded.defined() ? &rounded : nullptr,
            {.clip = update.clip_value},
            nullptr},
           of_rows);
  rows.write(own, weight);
  if (rounded.defined()) rows.write(rounded, parameter);
  for_each_tensor([&](size_t s) { rows.write(of_rows[s], state[s]); });
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
  const auto rate = common_rate(param_groups_);
  if (!rate) refuse_rates(name(), param_groups_);
  complete_scales(name(), param_groups_, *rate);  // a group that was added later has its ratio from then on
  for (auto& group : param_groups_) group.options().set_lr(lr * *options_of(group).lr_scale);
}

double FusedOptimizer::lr() const {
  return common_rate(param_groups_).value_or(param_groups_.front().options().get_lr());
}

bool FusedOptimizer::has_rate() const { return static_cast<const GroupOptions&>(*defaults_).lr_scale.has_value(); }

std::vector<double> FusedOptimizer::lr_scales() const {
  std::vector<double> scales;
  for (const auto& group : param_groups_) scales.push_back(options_of(group).lr_scale.value_or(1));
  return scales;
}

void FusedOptimizer::set_momentum(double momentum) {
  for (auto& group : param_groups_) {
    if (static_cast<GroupOptions&>(group.options()).set_momentum(momentum)) continue;
    throw ConfigError(name(), " has neither momentum nor betas that could be cycled");
  }
}

OptimizerState FusedOptimizer::state_dict() const {
  OptimizerState state;
  int64_t index = 0;
  for (size_t g = 0; g < param_groups_.size(); ++g) {
    const GroupOptions& options = options_of(param_groups_[g]);
    const std::span<const SlotSpec> specs = slots(options);
    GroupState& group = state.groups.emplace_back(GroupState{.options = options.to_pytorch(), .parameters = {}});
    const bool says_scale = options.lr_scale && (param_groups_.size() > 1 || *options.lr_scale != 1);
    if (says_scale) group.options.push_back({"lr_scale", *options.lr_scale});
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
  std::vector<GroupOptions*> of_groups;
  std::vector<std::vector<Slots>> loaded(param_groups_.size());
  for (size_t g = 0; g < param_groups_.size(); ++g) {
    options.push_back(options_of(param_groups_[g]).clone());
    of_groups.push_back(static_cast<GroupOptions*>(options[g].get()));
    of_groups[g]->from_pytorch(state.groups[g].options);
    loaded[g].resize(param_groups_[g].params().size());
  }
  load_scales(state, of_groups);
  Copies copies;
  for (const ParameterState& of : state.parameters) {
    const Position at = find_position(name(), positions, of.index);
    const at::Tensor parameter = stepped(at.number, param_groups_[at.group].params()[at.index]);
    const std::span<const SlotSpec> specs = slots(*of_groups[at.group]);
    const std::string label = cat(name(), ": state of ", parameter_name(names, at.number));
    loaded[at.group][at.index] = load_slots(label, specs, parameter, of, copies);
  }
  state.copy(copies);
  for (size_t g = 0; g < param_groups_.size(); ++g) param_groups_[g].set_options(std::move(options[g]));
  slots_ = std::move(loaded);
  for_each_parameter(
      [&](const Position& position, const at::Tensor&) { has_stepped_ = has_stepped_ || has_counted(position); });
}

void FusedOptimizer::keep_average(double decay) {
  check_own_weights(*this, "keep_average()");
  averages_.emplace(decay, all_parameters().size());
}

std::vector<at::Tensor> FusedOptimizer::averages() const {
  return averages_ ? averages_->all() : std::vector<at::Tensor>();
}

void FusedOptimizer::load_averages(const std::vector<at::Tensor>& averages) {
  if (!averages_) throw ConfigError(name(), ": averages of the weights are given, and none are kept");
  averages_->load(name(), all_stepped(), averages);
}

void FusedOptimizer::exchange_averages() {
  if (!averages_) return;
  averages_->exchange(all_stepped());
  if (masters_) masters_->round_into(all_parameters());
}

void FusedOptimizer::keep_masters() {
  if (has_stepped_) throw ConfigError(name(), ": masters of the weights are made before the first step, not after it");
  masters_ = std::make_unique<MasterWeights>(all_parameters());
  follow_parameters();
}

void FusedOptimizer::follow_parameters() {
  if (has_stepped_) throw ConfigError(name(), ": the parameters are cast before the first step, not after it");
  const bool prepared = std::any_of(slots_.begin(), slots_.end(), [](const std::vector<Slots>& of_group) {
    return !of_group.empty() && of_group.front().front().defined();
  });
  slots_.clear();
  if (prepared) prepare_all();  // it has state from the start, of the weights' or masters' dtype
}

std::vector<at::Tensor> FusedOptimizer::masters() const {
  return masters_ ? masters_->all() : std::vector<at::Tensor>();
}

void FusedOptimizer::load_masters(const std::vector<at::Tensor>& masters) {
  if (!masters_) throw ConfigError(name(), ": masters of the weights are given, and none are kept");
  masters_->load(name(), all_parameters(), masters);
}

// The tensor that a step changes: the parameter, or its master.
at::Tensor FusedOptimizer::stepped(size_t number, const at::Tensor& parameter) {
  if (!masters_) return parameter;
  const at::Tensor& master = masters_->prepare(number, parameter);
  return master.defined() ? master : parameter;
}

std::vector<at::Tensor> FusedOptimizer::all_parameters() const {
  std::vector<at::Tensor> all;
  for_each_parameter([&](const Position&, const at::Tensor& parameter) { all.push_back(parameter); });
  return all;
}

std::vector<at::Tensor> FusedOptimizer::all_stepped() {
  std::vector<at::Tensor> all = all_parameters();
  for (size_t i = 0; i < all.size(); ++i) all[i] = stepped(i, all[i]);
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

bool FusedOptimizer::is_number(std::string_view state) const {
  const std::span<const SlotSpec> specs = slots(static_cast<const GroupOptions&>(*defaults_));
  return std::any_of(specs.begin(), specs.end(),
                     [&](const SlotSpec& spec) { return spec.is_number() && state == spec.name; });
}

// Whether a parameter's state is that of a step taken: its counter is above 0 or, where there is none, any state
// exists.
bool FusedOptimizer::has_counted(const Position& position) const {
  const std::span<const SlotSpec> specs = slots(options_of(param_groups_[position.group]));
  const Slots& state = slots_[position.group][position.index];
  for (size_t s = 0; s < specs.size(); ++s) {
    if (state[s].defined()) return specs[s].kind != SlotKind::kCounter || state[s].item<float>() > 0;
  }
  return false;
}

void FusedOptimizer::prepare_all() {
  at::NoGradGuard no_grad;
  for_each_parameter([&](const Position& position, const at::Tensor& parameter) {
    check_parameter(name(), parameter);
    ready_slots(position, stepped(position.number, parameter));
  });
}

const GroupOptions& FusedOptimizer::options_of(const torch::optim::OptimizerParamGroup& group) const {
  const auto* options = dynamic_cast<const GroupOptions*>(&group.options());
  const torch::optim::OptimizerOptions& expected = *defaults_;
  if (options == nullptr || typeid(*options) != typeid(expected)) {
    throw ConfigError("the options of a parameter group are not of the optimizer's type: make it with param_group()");
  }
  return *options;
}

// Returns the complete state of a parameter, laid out as the parameter is now (its memory format may have changed).
Slots& FusedOptimizer::ready_slots(const Position& position, const at::Tensor& stepped) {
  const auto& group = param_groups_[position.group];
  if (slots_.size() <= position.group) slots_.resize(param_groups_.size());
  if (slots_[position.group].size() <= position.index) slots_[position.group].resize(group.params().size());
  Slots& state = slots_[position.group][position.index];
  const GroupOptions& options = options_of(group);
  prepare(options, stepped, state);
  const std::span<const SlotSpec> specs = slots(options);
  for (size_t s = 0; s < specs.size(); ++s) {
    if (!specs[s].is_number() && state[s].defined()) state[s] = laid_out_as(stepped, state[s]);
  }
  return state;
}

}  // namespace lockstep::optim
