#include "lockstep/parallel/reducer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/comm/blocks.h"
#include "lockstep/parallel/graph_walk.h"

namespace lockstep::parallel {

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
    : comm_(comm), options_(options), wire_(options.comm_hook ? options.comm_hook->wire() : options.buckets.wire) {
  options_.check();
  for (auto& parameter : parameters) add_parameter(std::move(parameter));
  make_buckets();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto* there = torch::autograd::impl::post_acc_grad_hooks(parameters_[i].tensor).get();
    if (there != nullptr && dynamic_cast<const Hook*>(there) == nullptr) {
      throw ConfigError("DistributedDataParallel: ", parameters_[i].name,
                        " has a post-accumulate-grad hook of its own, "
                        "and can have one only; use Tensor::register_hook for it");
    }
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[i].tensor, std::make_unique<Hook>(*this, i));
  }
}

// Another one may have been made for the same parameters since, and have put its hooks there.
Reducer::~Reducer() {
  for (auto& parameter : parameters_) {
    const auto* hook = dynamic_cast<Hook*>(torch::autograd::impl::post_acc_grad_hooks(parameter.tensor).get());
    if (hook != nullptr && hook->is_of(*this)) {
      torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
    }
  }
}

void Reducer::add_parameter(NamedParameter parameter) {
  const auto is_it = [&](const Parameter& other) { return other.tensor.is_same(parameter.tensor); };
  if (!parameter.tensor.requires_grad() || std::any_of(parameters_.begin(), parameters_.end(), is_it)) return;
  parameters_.push_back({.name = std::move(parameter.name), .tensor = parameter.tensor, .sparse = parameter.sparse});
  forget(parameters_.back());
  if (parameter.sparse) sparse_.push_back(parameters_.size() - 1);
}

void Reducer::make_buckets() {
  std::vector<ParameterSize> sizes;
  std::vector<size_t> dense;
  int64_t blocks = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& tensor = parameters_[i].tensor;
    if (parameters_[i].sparse) continue;
    dense.push_back(i);
    sizes.push_back({static_cast<int64_t>(tensor.nbytes()), tensor.scalar_type(), tensor.device()});
    blocks += comm::block_count(tensor.numel());
  }
  square_sums_ = at::zeros({blocks}, at::kDouble);
  const bool shared = comm_.shares(at::empty({1}));
  takes_uncast_ =
      shared && comm_.size() > 1 && !wire_ && options_.comm_hook == nullptr && options_.gradient_predivide_factor == 1;
  const auto plan = plan_buckets(sizes, options_.buckets);
  int64_t first = 0;
  for (const auto& numbers : plan) {
    std::vector<at::Tensor> tensors;
    auto& members = members_.emplace_back();
    int64_t count = 0;
    for (const size_t number : numbers) {
      Parameter& parameter = parameters_[dense[number]];
      parameter.bucket = members_.size() - 1;
      parameter.member = members.size();
      members.push_back(dense[number]);
      tensors.push_back(parameter.tensor);
      count += comm::block_count(parameter.tensor.numel());
    }
    const bool narrowed = tensors[0].scalar_type() == at::kFloat;
    buckets_.emplace_back(members_.size() - 1,
                          lockstep::cat("bucket ", members_.size(), "/", plan.size(), " (",
                                        parameters_[members[0]].name, members.size() > 1 ? " …)" : ")"),
                          tensors, square_sums_.narrow(0, first, count),
                          Transport{.flat = !shared || !tensors[0].is_cpu(),
                                    .always_fp32 = options_.allreduce_always_fp32,
                                    .through_cpu = !tensors[0].is_cpu() && !comm_.shares(tensors[0]),
                                    .wire = narrowed ? wire_ : std::nullopt,
                                    .multiply = options_.gradient_predivide_factor,
                                    .hook = options_.comm_hook});
    first += count;
  }
}

// Backward steals a gradient where .grad is undefined, and would add to what is there.
void Reducer::begin() {
  active_ = true;
  launched_ = 0;
  for (auto& bucket : buckets_) bucket.begin();
  for (auto& parameter : parameters_) {
    if (!parameter.tensor.requires_grad()) {
      throw ConfigError(parameter.name,
                        " required a gradient when DistributedDataParallel was made, and does not now; "
                        "make it anew after freezing");
    }
    parameter.tensor.mutable_grad().reset();
    parameter.ready = parameter.uncast = false;
    parameter.used = 0;
    forget(parameter);  // passes that no last one followed
  }
}

void Reducer::begin_step(size_t lanes) {
  by_hand_ = false;
  lanes_ = lanes;
  lane_ = 0;
  begin();
}

void Reducer::begin_pass(bool last) {
  if (!active_) {
    by_hand_ = true;
    lanes_ = 0;
    begin();
  }
  closing_ = last;
  lane_ = lanes_++;
  for (auto& parameter : parameters_) parameter.tensor.mutable_grad().reset();
}

std::vector<bool> Reducer::reached_by(const at::Tensor& loss) {
  std::vector<bool> reached;
  if (known_) {
    for (size_t i = 0; i < parameters_.size(); ++i) reached.push_back(reached_at_first(i));
    return reached;
  }
  reached = reached_parameters({loss}, tensors());
  if (options_.static_graph) {
    reached_.resize(std::max(reached_.size(), lane_ + 1));
    reached_[lane_] = reached;
  }
  return reached;
}

// A lane that had no samples in the first step is taken to use all that some lane did.
bool Reducer::reached_at_first(size_t index) const {
  if (lane_ >= reached_.size() || reached_[lane_].empty()) return !parameters_[index].never;
  return reached_[lane_][index];
}

void Reducer::expect(const at::Tensor& loss) {
  if (takes_uncast_ && lanes_ == 1 && !by_hand_ && scale_ == 1) hook_casts(loss);
  if (!walks() && !options_.static_graph) return;
  const auto reached = reached_by(loss);
  for (size_t i = parameters_.size(); i-- > 0;) {
    if (reached[i]) {
      ++parameters_[i].used;
    } else {
      give_zero(i);
    }
  }
}

void Reducer::hook_casts(const at::Tensor& loss) const { parallel::hook_casts(loss, tensors(), take_uncast_); }

std::vector<at::Tensor> Reducer::tensors() const {
  std::vector<at::Tensor> all;
  for (const auto& parameter : parameters_) all.push_back(parameter.tensor);
  return all;
}

// Whether it has been taken; it is cast, and comes again as fp32, if not.
bool Reducer::on_uncast(size_t index, const at::Tensor& gradient) {
  Parameter& parameter = parameters_[index];
  const bool narrow = gradient.scalar_type() == at::kBFloat16 || gradient.scalar_type() == at::kHalf;
  if (!active_ || !narrow || !gradient.is_cpu() || parameter.sparse || parameter.ready ||
      parameter.tensor.scalar_type() != at::kFloat || gradient.strides() != parameter.tensor.strides()) {
    return false;
  }
  check_taken(index);
  const c10::AutoGradMode no_grad(false);
  parameter.uncast = true;
  put(parameter, buckets_[parameter.bucket].put_leaf(parameter.member, gradient, at::empty_like(parameter.tensor)));
  return true;
}

void Reducer::empty_lane() {
  for (size_t i = parameters_.size(); i-- > 0;) give_zero(i);
}

void Reducer::give_zero(size_t index) {
  Parameter& parameter = parameters_[index];
  if (parameter.sparse) {
    const at::Tensor none = at::empty({0}, at::kLong);
    return give_rows(parameter, {none, parameter.tensor.detach().narrow(0, 0, 0).cpu()});
  }
  const c10::AutoGradMode no_grad(false);
  give(parameter, at::zeros_like(parameter.tensor));
}

void Reducer::on_gradient(size_t index) {
  if (!active_) return;
  const std::lock_guard lock(mutex_);  // of a GPU's parameters on autograd's thread for it
  Parameter& parameter = parameters_[index];
  if (std::exchange(parameter.uncast, false)) return;
  check_taken(index);
  at::Tensor gradient = std::exchange(parameter.tensor.mutable_grad(), at::Tensor());
  if (!parameter.sparse) return give(parameter, owned(std::move(gradient), parameter.tensor));
  give_rows(parameter, add_equal_rows(rows_of(gradient, parameter.name)));
}

// Whether a gradient may be taken now.
void Reducer::check_taken(size_t index) const {
  if (c10::GradMode::is_enabled()) {
    throw ConfigError("backward with create_graph: DistributedDataParallel folds first derivatives only; leave it out");
  }
  if (known_ && !reached_at_first(index)) {
    throw ConfigError("static_graph: ", parameters_[index].name,
                      " got a gradient that it did not get in the first step; "
                      "leave static_graph out for a model whose graph changes");
  }
}

void Reducer::give_rows(Parameter& parameter, SparseRows rows) {
  parameter.rows[lane_] = std::move(rows);
  if (has_all_lanes(parameter)) complete(parameter);
}

void Reducer::give(Parameter& parameter, at::Tensor gradient) {
  if (parameter.ready) {
    throw ConfigError(parameter.name,
                      " got a second gradient in one backward pass; a part of the model that runs its "
                      "own backward within backward can't be folded");
  }
  if (options_.allreduce_always_fp32 && gradient.element_size() < 4) gradient = gradient.to(at::kFloat);
  if (options_.gradient_predivide_factor != 1) gradient.div_(options_.gradient_predivide_factor);
  if (by_hand_) {
    parameter.lanes.push(std::move(gradient));
  } else {
    parameter.lanes.push(lane_, std::move(gradient));
  }
  if (has_all_lanes(parameter)) complete(parameter);
}

bool Reducer::has_all_lanes(const Parameter& parameter) const {
  if (by_hand_) return closing_;
  return (parameter.sparse ? parameter.rows.size() : parameter.lanes.lanes()) == lanes_;
}

void Reducer::complete(Parameter& parameter) {
  if (parameter.sparse) {
    parameter.ready = true;
    return;
  }
  at::Tensor sum = parameter.lanes.finish();
  if (scale_ != 1) sum.mul_(scale_);
  put(parameter, buckets_[parameter.bucket].put(parameter.member, std::move(sum)));
}

// What is to be its .grad lies in its bucket now.
void Reducer::put(Parameter& parameter, at::Tensor grad) {
  parameter.ready = true;
  parameter.tensor.mutable_grad() = std::move(grad);
  if (!options_.delay_allreduce) launch_filled();
  comm_.progress();
}

// Buckets go out in their order, which is the same on all ranks, whatever order backward fills them in.
void Reducer::launch_filled() {
  for (; launched_ < buckets_.size() && buckets_[launched_].full(); ++launched_) buckets_[launched_].launch(comm_);
}

void Reducer::finish() {
  launch_filled();
  const auto ready = [](const Parameter& parameter) { return parameter.ready; };
  if (!std::all_of(parameters_.begin(), parameters_.end(), ready)) refuse_unused();
  for (auto& bucket : buckets_) bucket.finish();
  finish_sparse();
  if (walks()) forget_unused();
  for (const auto& parameter : parameters_) {
    if (parameter.never) parameter.tensor.mutable_grad().reset();
  }
  known_ = known_ || options_.static_graph;
  add_square_sums();
  active_ = false;
}

void Reducer::finish_sparse() {
  for (const size_t index : sparse_) {
    Parameter& parameter = parameters_[index];
    std::vector<SparseRows> lanes;
    for (auto& [lane, rows] : std::exchange(parameter.rows, {})) {
      if (scale_ != 1) rows.values.mul_(scale_);
      lanes.push_back(std::move(rows));
    }
    parameter.tensor.mutable_grad() = fold_sparse(lanes, parameter.tensor, comm_);
  }
}

// A parameter that no lane of any rank has used has no gradient, rather than one of 0, and optimizers leave it alone.
void Reducer::forget_unused() {
  const at::Tensor used = at::zeros({static_cast<int64_t>(parameters_.size())}, at::kDouble);
  auto* count = used.mutable_data_ptr<double>();
  for (size_t i = 0; i < parameters_.size(); ++i) count[i] = parameters_[i].used;
  comm_.fold({used}, {.label = "the parameters in use"})->wait();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (count[i] > 0) continue;
    parameters_[i].tensor.mutable_grad().reset();
    parameters_[i].never = options_.static_graph;
  }
}

void Reducer::add_square_sums() {
  square_sum_ = 0;
  const auto* sums = square_sums_.const_data_ptr<double>();
  for (int64_t i = 0; i < square_sums_.numel(); ++i) square_sum_ += sums[i];
  for (const size_t index : sparse_) {
    const at::Tensor& grad = parameters_[index].tensor.grad();
    if (grad.defined()) square_sum_ += grad._values().to(at::kDouble).square().sum().item<double>();
  }
}

std::string Reducer::first_not_finite() const {
  const auto* sum = square_sums_.const_data_ptr<double>();
  for (const auto& members : members_) {
    for (const size_t index : members) {
      const int64_t blocks = comm::block_count(parameters_[index].tensor.numel());
      if (!std::all_of(sum, sum + blocks, [](double value) { return std::isfinite(value); })) {
        return parameters_[index].name;
      }
      sum += blocks;
    }
  }
  for (const size_t index : sparse_) {
    const at::Tensor& grad = parameters_[index].tensor.grad();
    if (grad.defined() && !grad._values().isfinite().all().item<bool>()) return parameters_[index].name;
  }
  return "";
}

void Reducer::refuse_unused() const {
  std::string names;
  size_t count = 0;
  for (const auto& parameter : parameters_) {
    if (parameter.ready) continue;
    if (++count <= 3) names += (names.empty() ? "" : ", ") + parameter.name;
  }
  if (count > 3) names += lockstep::cat(" and ", count - 3, " more");
  throw ConfigError("rank ", comm_.rank(), ": no gradient for ", names,
                    ": the loss does not depend on them; freeze them (requires_grad false), use them, or set "
                    "find_unused_parameters");
}

void Reducer::drop() noexcept {
  active_ = false;
  for (auto& bucket : buckets_) bucket.drop();
  for (auto& parameter : parameters_) {
    forget(parameter);
    parameter.tensor.mutable_grad().reset();
  }
}

// No lane's gradient is there yet, or what was is dropped.
void Reducer::forget(Parameter& parameter) const {
  parameter.lanes = LaneSum(parameter.tensor.scalar_type() == at::kFloat ? wire_ : std::nullopt);
  parameter.rows.clear();
}

}  // namespace lockstep::parallel
