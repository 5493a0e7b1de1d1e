#include "lockstep/parallel/reducer.h"

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/exception_text.h"
#include "lockstep/optim/held_gradient.h"
#include "lockstep/parallel/gradients/joint_finish.h"
#include "lockstep/parallel/gradients/ownership.h"

namespace lockstep::parallel {
namespace {

DdpOptions checked(const DdpOptions& options) {
  options.check();
  return options;
}

// All writes to .grad go through here. Returns the gradient that was there.
at::Tensor exchange_grad(const NamedParameter& parameter, at::Tensor gradient = {}) {
  return std::exchange(parameter.tensor.mutable_grad(), std::move(gradient));
}

// Whether the fold can read low-precision gradients and write fp32 sums, and nothing else is done with gradients.
bool folds_low_precision(comm::Communicator& comm, const DdpOptions& options) {
  return comm.shares(at::empty({1})) && comm.size() > 1 && !options.wire() && options.comm_hook == nullptr &&
         options.gradient_predivide_factor == 1;
}

}  // namespace

Reducer::Reducer(const std::vector<NamedParameter>& parameters, comm::Communicator& comm, const DdpOptions& options,
                 ByHand by_hand)
    : comm_(comm),
      options_(checked(options)),
      by_hand_(std::move(by_hand)),
      parameters_(trainable(parameters)),
      frozen_(frozen(parameters)),
      folded_(real_views(parameters_)),
      lane_sums_(lane_sums_of(tensors_of(folded_), options_.wire())),
      buckets_(folded_, comm, options_),
      unused_(parameters_, options_.find_unused_parameters && !options_.static_graph),
      sparse_(parameters_),
      hooks_(joined(parameters_, frozen_), [this](size_t index) { on_gradient(index); }) {
  // An earlier wrapper may have left them, and their update may be over.
  installed_.begin(InstalledGradients::kBeforeWrapping);
  for (const NamedParameter& each : parameters_) installed_.add(each, each.tensor.grad());
  if (options_.static_graph) static_graph_.emplace(parameters_);
  if (folds_low_precision(comm_, options_)) {
    low_precision_.emplace(
        parameters_, [this](size_t index, const at::Tensor& gradient) { return take_low_precision(index, gradient); });
  }
}

// The step begins, and its lanes or passes are announced one by one.

void Reducer::begin(Step step) {
  check_trained(parameters_);
  for (auto& sum : lane_sums_) sum.clear();  // a pass may have ended with an error
  sparse_.clear();
  predivide(step);
  buckets_.begin_step(step.loss_scale, step.multiply);
  unused_.begin_step();
  if (static_graph_) static_graph_->begin_step();
  if (low_precision_) low_precision_->begin_step();
  step_ = std::move(step);
  step_.ready.assign(parameters_.size(), false);
  step_.active = true;
}

// With Apex's order a pass by hand is divided by the number of ranks after it is folded.
void Reducer::predivide(Step& step) const {
  const double factor = options_.gradient_predivide_factor;
  if (factor == 1) return;
  step.leaf_scale = 1 / factor;
  step.multiply = step.by_hand ? (options_.gradient_average ? factor * step.scale : 1) : factor;
  step.scale = 1;
}

void Reducer::clear_gradients() noexcept {
  for (const auto& parameter : parameters_) exchange_grad(parameter);
  for (auto& sum : lane_sums_) sum.clear();
  sparse_.clear();
  leftovers_.clear();
}

// Backward steals a gradient where .grad is undefined, and would add to what is there.
void Reducer::begin_step(size_t lanes, const StepSettings& settings) {
  begin({.delayed = settings.delayed || options_.delay_allreduce,
         .number = settings.number,
         .loss_scale = settings.loss_scale,
         .loss_id = settings.loss_id,
         .lanes = lanes});
  leftovers_.begin_step(parameters_.size());
  const c10::AutoGradMode no_grad(false);
  const optim::UseHeldGradients held;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor there = exchange_grad(parameters_[i]);
    if (!there.defined()) continue;
    const bool own = installed_.has(i, there);
    const double scale = optim::loss_scale_of(there);
    optim::release(there);
    there = as_real(std::move(there));
    if (!own) {
      check_scale(parameters_[i], scale, step_.loss_scale);
      leftovers_.set_local(i, there / (options_.gradient_average ? comm_.size() : 1));
      use(i);
    } else if (!installed_.is_used(i, parameters_[i], there, settings.number)) {
      const bool same_step = settings.number == installed_.number() && settings.number != StepSettings::kNoNumber;
      if (!same_step && !std::isfinite(square_sum_)) continue;  // of a step that was skipped
      if (!same_step) installed_.refuse_unused(parameters_[i], settings.number);
      if (scale != 1) installed_.check_loss(settings.loss_id, settings.number);
      check_scale(parameters_[i], scale, step_.loss_scale);
      // The part of a flat bucket is about to be written.
      leftovers_.set_common(i, there.is_sparse() ? there : owned(there, folded_[i].tensor));
      use(i);
    }
  }
}

std::vector<std::string> Reducer::local_gradients() const {
  std::vector<std::string> names;
  for (const size_t index : leftovers_.local_ones()) names.push_back(parameters_[index].name);
  return names;
}

void Reducer::begin_pass(const PassSettings& settings) {
  begin({.by_hand = true, .delayed = settings.delayed || options_.delay_allreduce, .scale = settings.scale});
}

// A pass that nobody has announced has its first gradient.
bool Reducer::begin_by_itself() {
  const auto settings = by_hand_.begin();
  if (!settings) return false;
  begin_pass(*settings);
  step_.pass = finish_with_backward(settings->order, [this] { finish_by_itself(); });
  step_.by_itself = true;
  return true;
}

void Reducer::finish_by_itself() {
  try {
    finish_pass();
  } catch (...) {
    fail(exception_text());
    throw;
  }
}

void Reducer::fail(const std::string& why) noexcept {
  drop();
  comm_.abort(why);
}

void Reducer::expect(const at::Tensor& loss) {
  refuse_given();
  if (low_precision_ && step_.lanes == 1 && !step_.by_hand && local_gradients().empty())
    low_precision_->hook_casts(loss);
  for (const size_t index : unused_.unused_in(loss)) add_unreached(index);
  for (size_t i = parameters_.size(); static_graph_ && i-- > 0;) {
    if (static_graph_->expects(i, step_.lane, 0)) add_unreached(i);
  }
}

// Of a pass by hand, finish_pass() folds what is in .grad from before.
void Reducer::add_unreached(size_t index) {
  if (!step_.by_hand || !parameters_[index].tensor.grad().defined()) add_zero(index);
}

void Reducer::give(const std::vector<at::Tensor>& gradients) {
  const c10::AutoGradMode no_grad(false);
  std::vector<at::Tensor> own;
  for (const at::Tensor& each : gradients) own.push_back(at::empty_like(each));
  at::_foreach_copy_(own, gradients);
  for (size_t i = parameters_.size(); i-- > 0;) take(i, std::move(own[i]));
}

void Reducer::end_lane() {
  for (size_t i = parameters_.size(); may_lack() && i-- > 0;) {
    if (at::Tensor rest = take_rest(i); rest.defined()) {
      take(i, std::move(rest));
    } else if (!has_given(i)) {
      add_zero(i);
    }
  }
}

void Reducer::empty_lane() {
  for (size_t i = parameters_.size(); i-- > 0;) add_zero(i);
}

void Reducer::add_zero(size_t index) {
  const c10::AutoGradMode no_grad(false);
  const NamedParameter& parameter = folded_[index];
  take(index, parameter.sparse ? at::Tensor() : at::zeros_like(parameter.tensor));
}

// Whether lanes may lack gradients of some parameters.
bool Reducer::may_lack() const { return options_.find_unused_parameters || options_.static_graph; }

at::Tensor Reducer::take_rest(size_t index) {
  return static_graph_ ? static_graph_->rest(index, step_.lane) : at::Tensor();
}

void Reducer::use(size_t index) {
  unused_.use(index);
  if (static_graph_) static_graph_->use(index);
}

// Whether the parameter has had a gradient in the selected lane.
bool Reducer::has_given(size_t index) const {
  if (step_.ready[index]) return true;
  return parameters_[index].sparse ? sparse_.has(index, step_.lane) : lane_sums_[index].has(step_.lane);
}

// From here downwards a gradient goes its way. Backward has accumulated that of the selected lane or pass in .grad.

void Reducer::on_gradient(size_t index) {
  const std::lock_guard lock(mutex_);
  try {
    accept(index);
  } catch (...) {
    if (step_.by_itself || !step_.active)
      fail(exception_text());  // whoever has announced a step tells of its errors himself
    throw;
  }
}

void Reducer::accept(size_t index) {
  if (index >= parameters_.size()) refuse_new(frozen_[index - parameters_.size()].name);
  if (step_.by_itself && step_.pass.expired()) step_.active = false;  // it ended with an error elsewhere
  if (!step_.active && !begin_by_itself()) return installed_.leave_to_rank(index, parameters_[index].tensor);
  if (low_precision_ && low_precision_->was_taken(index)) return;
  check_allowed();
  if (step_.by_hand) unused_.use(index);
  at::Tensor gradient = exchange_grad(parameters_[index]);
  if (static_graph_) gradient = static_graph_->add(index, step_.lane, std::move(gradient));
  if (gradient.defined()) take(index, std::move(gradient));
}

void Reducer::take(size_t index, at::Tensor gradient) {
  if (parameters_[index].sparse) return add_rows(index, gradient);
  add_to_lanes(index, owned(as_real(std::move(gradient)), folded_[index].tensor));
}

// What this rank alone has from before is a part of its first lane's gradient.
bool Reducer::adds_local(size_t index) const { return step_.lane == 0 && leftovers_.local(index).defined(); }

void Reducer::add_to_lanes(size_t index, at::Tensor gradient) {
  check_first(index);
  if (options_.allreduce_always_fp32 && gradient.element_size() < 4) gradient = gradient.to(at::kFloat);
  if (adds_local(index)) gradient.add_(leftovers_.local(index));
  if (step_.leaf_scale != 1) gradient.mul_(step_.leaf_scale);
  LaneSum& lanes = lane_sums_[index];
  lanes.push(step_.lane, std::move(gradient));
  if (lanes.lanes() == step_.lanes) put_in_bucket(index, lanes.finish());
}

void Reducer::put_in_bucket(size_t index, at::Tensor sum) {
  if (step_.scale != 1) sum.mul_(step_.scale);
  buckets_.put(index, std::move(sum));
  launch_full(index);
}

void Reducer::launch_full(size_t index) {
  step_.ready[index] = true;
  if (!step_.delayed) buckets_.launch_full();
  comm_.progress();
}

// A gradient from before, such as one of no_sync(), is this rank's alone until it is folded.
void Reducer::finish_pass() {
  for (size_t i = parameters_.size(); i-- > 0;) {
    if (step_.ready[i]) continue;
    if (at::Tensor rest = take_rest(i); rest.defined()) {
      take(i, std::move(rest));
    } else if (at::Tensor there = exchange_grad(parameters_[i]); there.defined()) {
      check_scale(parameters_[i], optim::loss_scale_of(there), step_.loss_scale);
      use(i);
      take(i, std::move(there));
    } else if (may_lack()) {
      add_zero(i);
    }
  }
  finish();
  by_hand_.end();
}

void Reducer::finish() {
  const optim::UseHeldGradients held;
  buckets_.launch_full();
  if (!std::all_of(step_.ready.begin(), step_.ready.end(), [](bool ready) { return ready; })) refuse_missing();
  std::vector<at::Tensor> gradients = buckets_.finish();
  sparse_.fold(step_.scale * step_.leaf_scale * step_.multiply, comm_, gradients);
  unused_.finish(comm_);
  if (static_graph_) static_graph_->finish(comm_);
  if (leftovers_.add_common(gradients)) buckets_.take_square_sums(gradients);
  install(std::move(gradients));
  square_sum_ = buckets_.square_sum();
  if (!sparse_.empty()) square_sum_ = sparse_.add_square_sums(square_sum_);
  if (comm_.size() > 1) square_sum_.item();  // it tells of a reduction that was broken off
  if (options_.comm_hook != nullptr && !options_.comm_hook->divides()) {
    options_.comm_hook->end_step(std::isfinite(square_sum_));
  }
  step_.active = step_.by_itself = false;
  leftovers_.clear();
}

void Reducer::end_divided(double square_sum) {
  square_sum_ = square_sum;
  options_.comm_hook->end_step(std::isfinite(square_sum));
}

void Reducer::install(std::vector<at::Tensor> gradients) {
  installed_.begin(step_.number, step_.loss_id);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const bool unused = static_graph_ ? static_graph_->unused(i) : unused_.unused(i);
    at::Tensor gradient = unused ? at::Tensor() : std::move(gradients[i]);
    if (gradient.defined() && parameters_[i].tensor.is_complex()) gradient = as_complex(gradient);
    installed_.add(parameters_[i], gradient);
    if (gradient.defined()) optim::hold_scaled(gradient, step_.loss_scale);
    exchange_grad(parameters_[i], gradient);
  }
}

void Reducer::drop() noexcept {
  step_.active = step_.by_itself = false;
  buckets_.drop();
  clear_gradients();
}

// The two detours. Sparse gradients wait outside of the buckets until finish() folds them.
void Reducer::add_rows(size_t index, at::Tensor gradient) {
  check_first(index);
  if (adds_local(index)) {
    gradient = gradient.defined() ? gradient + leftovers_.local(index) : leftovers_.local(index);
  }
  sparse_.push(index, step_.lane, gradient);
  if (sparse_.lanes(index) == step_.lanes) step_.ready[index] = true;
}

// A low-precision gradient comes before its cast to fp32, where this rank has one lane, and needs no lane sum. A pass
// by hand or another step may share the cast with the step that has put a hook on it.
bool Reducer::take_low_precision(size_t index, const at::Tensor& gradient) {
  const std::lock_guard lock(mutex_);
  const bool one_lane = step_.active && !step_.by_hand && step_.lanes == 1;
  if (!one_lane || step_.ready[index] || adds_local(index)) return false;
  if (static_graph_ && !static_graph_->expects(index, step_.lane, 1)) return false;
  check_allowed();
  if (static_graph_) static_graph_->count(index, step_.lane);
  buckets_.put_low_precision(index, gradient);
  launch_full(index);
  return true;
}

// The conditions that the way depends on, and answers after it.

void Reducer::check_allowed() const {
  if (c10::GradMode::is_enabled()) {
    throw ConfigError("backward with create_graph: DistributedDataParallel folds first derivatives only; leave it out");
  }
}

// A backward pass within the function that returns the lane's loss has no weight.
void Reducer::refuse_given() const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!has_given(i) && !(static_graph_ && static_graph_->has(i, step_.lane))) continue;
    throw ConfigError(parameters_[i].name,
                      " got a gradient before the lane's loss was known: a backward pass within the "
                      "function of a step; return the sum of all losses from it");
  }
}

void Reducer::check_first(size_t index) const {
  if (!has_given(index)) return;
  throw ConfigError(parameters_[index].name,
                    " got a second gradient in one backward pass, as a part of the model runs a backward of its own "
                    "within backward; set static_graph, or checkpoint that part by lockstep::nn::checkpoint");
}

std::string Reducer::first_not_finite() const {
  const optim::UseHeldGradients held;
  const auto dense = buckets_.first_not_finite();
  const auto found = dense ? dense : sparse_.first_not_finite();
  return found ? parameters_[*found].name : "";
}

void Reducer::refuse_missing() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!step_.ready[i]) names.push_back(parameters_[i].name);
  }
  throw ConfigError(
      "rank ", comm_.rank(), ": no gradient for ", some_of(names),
      ": the loss does not depend on them; freeze them (requires_grad false), use them (a weight that is tied "
      "to another is one tensor under both names), or set find_unused_parameters");
}

}  // namespace lockstep::parallel
