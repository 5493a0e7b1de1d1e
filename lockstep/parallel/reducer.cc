#include "lockstep/parallel/reducer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
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

std::vector<LaneSum> lane_sums_of(const std::vector<NamedParameter>& parameters, const DdpOptions& options) {
  std::vector<LaneSum> sums;
  for (const auto& [name, tensor, sparse] : parameters) {
    sums.emplace_back(tensor.scalar_type() == at::kFloat ? options.wire() : std::nullopt);
  }
  return sums;
}

// Whether the fold can read low-precision gradients and write fp32 sums, and nothing else is done with gradients.
bool folds_low_precision(comm::Communicator& comm, const DdpOptions& options) {
  return comm.shares(at::empty({1})) && comm.size() > 1 && !options.wire() && options.comm_hook == nullptr &&
         options.gradient_predivide_factor == 1;
}

}  // namespace

class Reducer::Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(Reducer& reducer, size_t index) : reducer_(reducer), index_(index) {}
  void operator()(const torch::autograd::Variable&) override { reducer_.on_gradient(index_); }
  bool is_of(const Reducer& reducer) const { return &reducer_ == &reducer; }

 private:
  Reducer& reducer_;
  size_t index_;
};

Reducer::Reducer(std::vector<NamedParameter> parameters, comm::Communicator& comm, const DdpOptions& options)
    : comm_(comm),
      options_(checked(options)),
      parameters_(trainable(std::move(parameters))),
      lane_sums_(lane_sums_of(parameters_, options_)),
      buckets_(parameters_, comm, options_),
      unused_(parameters_,
              {.find_unused_parameters = options_.find_unused_parameters, .static_graph = options_.static_graph}),
      sparse_(parameters_) {
  if (folds_low_precision(comm_, options_)) {
    low_precision_.emplace(
        parameters_, [this](size_t index, const at::Tensor& gradient) { return take_low_precision(index, gradient); });
  }
  install_hooks();
}

void Reducer::install_hooks() {
  for (const auto& parameter : parameters_) {
    const auto* there = torch::autograd::impl::post_acc_grad_hooks(parameter.tensor).get();
    if (there != nullptr && dynamic_cast<const Hook*>(there) == nullptr) {
      throw ConfigError("DistributedDataParallel: ", parameter.name,
                        " has a post-accumulate-grad hook of its own, "
                        "and can have one only; use Tensor::register_hook for it");
    }
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[i].tensor, std::make_unique<Hook>(*this, i));
  }
}

// Another reducer may have put its hooks on the same parameters since.
Reducer::~Reducer() {
  for (const auto& parameter : parameters_) {
    const auto* hook = dynamic_cast<Hook*>(torch::autograd::impl::post_acc_grad_hooks(parameter.tensor).get());
    if (hook != nullptr && hook->is_of(*this)) {
      torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
    }
  }
}

// The step begins, and its lanes or passes are announced one by one.

void Reducer::begin(Step step) {
  for (const auto& parameter : parameters_) {
    if (!parameter.tensor.requires_grad()) {
      throw ConfigError(parameter.name,
                        " required a gradient when DistributedDataParallel was made, and does not now; "
                        "make it anew after freezing");
    }
  }
  clear_gradients();
  buckets_.begin_step();
  unused_.begin_step();
  if (low_precision_) low_precision_->begin_step();
  step_ = std::move(step);
  step_.ready.assign(parameters_.size(), false);
  step_.active = true;
}

// Backward steals a gradient where .grad is undefined, and would add to what is there. Lane sums may hold passes that
// no last one followed.
void Reducer::clear_gradients() noexcept {
  for (const auto& parameter : parameters_) exchange_grad(parameter);
  for (auto& sum : lane_sums_) sum.clear();
  sparse_.clear();
}

void Reducer::begin_step(size_t lanes) { begin({.lanes = lanes}); }

void Reducer::begin_pass(bool last, double scale) {
  if (!step_.active) begin({.by_hand = true});
  for (const auto& parameter : parameters_) exchange_grad(parameter);
  step_.last_pass = last;
  step_.scale = scale;
  step_.lane = step_.lanes++;
}

void Reducer::expect(const at::Tensor& loss) {
  if (low_precision_ && step_.lanes == 1 && !step_.by_hand) low_precision_->hook_casts(loss);
  for (const size_t index : unused_.unused_in(loss, step_.lane)) add_zero(index);
}

void Reducer::empty_lane() {
  for (size_t i = parameters_.size(); i-- > 0;) add_zero(i);
}

void Reducer::add_zero(size_t index) {
  const c10::AutoGradMode no_grad(false);
  const NamedParameter& parameter = parameters_[index];
  if (parameter.sparse) return add_rows(index, at::Tensor());
  add_to_lanes(index, at::zeros_like(parameter.tensor));
}

// From here downwards a gradient goes its way. Backward has accumulated that of the selected lane or pass in .grad.

void Reducer::on_gradient(size_t index) {
  if (!step_.active) return;
  const std::lock_guard lock(mutex_);
  if (low_precision_ && low_precision_->was_taken(index)) return;
  check_allowed(index);
  const NamedParameter& parameter = parameters_[index];
  at::Tensor gradient = exchange_grad(parameter);
  if (parameter.sparse) return add_rows(index, gradient);
  add_to_lanes(index, owned(std::move(gradient), parameter.tensor));
}

void Reducer::add_to_lanes(size_t index, at::Tensor gradient) {
  check_first(index);
  if (options_.allreduce_always_fp32 && gradient.element_size() < 4) gradient = gradient.to(at::kFloat);
  if (options_.gradient_predivide_factor != 1) gradient.div_(options_.gradient_predivide_factor);
  LaneSum& lanes = lane_sums_[index];
  if (step_.by_hand) {
    lanes.push(std::move(gradient));
  } else {
    lanes.push(step_.lane, std::move(gradient));
  }
  if (was_last(lanes.lanes())) put_in_bucket(index, lanes.finish());
}

void Reducer::put_in_bucket(size_t index, at::Tensor sum) {
  if (step_.scale != 1) sum.mul_(step_.scale);
  buckets_.put(index, std::move(sum));
  launch_full(index);
}

void Reducer::launch_full(size_t index) {
  step_.ready[index] = true;
  if (!options_.delay_allreduce) buckets_.launch_full();
  comm_.progress();
}

void Reducer::finish() {
  buckets_.launch_full();
  if (!std::all_of(step_.ready.begin(), step_.ready.end(), [](bool ready) { return ready; })) refuse_missing();
  std::vector<at::Tensor> gradients = buckets_.finish();
  sparse_.fold(step_.scale, comm_, gradients);
  unused_.finish(comm_);
  install(std::move(gradients));
  square_sum_ = sparse_.add_square_sums(buckets_.square_sum());
  step_.active = false;
}

void Reducer::install(std::vector<at::Tensor> gradients) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    exchange_grad(parameters_[i], unused_.unused(i) ? at::Tensor() : std::move(gradients[i]));
  }
}

void Reducer::drop() noexcept {
  step_.active = false;
  buckets_.drop();
  clear_gradients();
}

// The two detours. Sparse gradients wait outside of the buckets until finish() folds them.
void Reducer::add_rows(size_t index, const at::Tensor& gradient) {
  check_first(index);
  sparse_.push(index, step_.lane, gradient);
  if (was_last(sparse_.lanes(index))) step_.ready[index] = true;
}

// A low-precision gradient comes before its cast to fp32, where this rank has one lane, and needs no lane sum.
bool Reducer::take_low_precision(size_t index, const at::Tensor& gradient) {
  if (!step_.active) return false;
  const std::lock_guard lock(mutex_);
  if (step_.ready[index]) return false;
  check_allowed(index);
  buckets_.put_low_precision(index, gradient);
  launch_full(index);
  return true;
}

// The conditions that the way depends on, and answers after it.

bool Reducer::was_last(size_t lanes) const { return step_.by_hand ? step_.last_pass : lanes == step_.lanes; }

void Reducer::check_allowed(size_t index) const {
  if (c10::GradMode::is_enabled()) {
    throw ConfigError("backward with create_graph: DistributedDataParallel folds first derivatives only; leave it out");
  }
  unused_.check_gradient(index, step_.lane);
}

void Reducer::check_first(size_t index) const {
  if (!step_.ready[index]) return;
  throw ConfigError(parameters_[index].name,
                    " got a second gradient in one backward pass; a part of the model that runs its "
                    "own backward within backward can't be folded");
}

std::string Reducer::first_not_finite() const {
  const auto dense = buckets_.first_not_finite();
  const auto found = dense ? dense : sparse_.first_not_finite();
  return found ? parameters_[*found].name : "";
}

void Reducer::refuse_missing() const {
  std::string names;
  size_t count = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (step_.ready[i]) continue;
    if (++count <= 3) names += (names.empty() ? "" : ", ") + parameters_[i].name;
  }
  if (count > 3) names += lockstep::cat(" and ", count - 3, " more");
  throw ConfigError("rank ", comm_.rank(), ": no gradient for ", names,
                    ": the loss does not depend on them; freeze them (requires_grad false), use them, or set "
                    "find_unused_parameters");
}

}  // namespace lockstep::parallel
