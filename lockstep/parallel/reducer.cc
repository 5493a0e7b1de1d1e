#include "lockstep/parallel/reducer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/comm/blocks.h"

namespace lockstep::parallel {

class Reducer::Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(Reducer& reducer, size_t index) : reducer_(reducer), index_(index) {}
  void operator()(const torch::autograd::Variable&) override { reducer_.on_gradient(index_); }

 private:
  Reducer& reducer_;
  size_t index_;
};

Reducer::Reducer(std::vector<NamedParameter> parameters, comm::Communicator& comm, const BucketOptions& options)
    : comm_(comm) {
  std::vector<ParameterSize> sizes;
  int64_t blocks = 0;
  for (auto& [name, tensor] : parameters) {
    if (!tensor.requires_grad()) continue;
    sizes.push_back({static_cast<int64_t>(tensor.nbytes()), tensor.scalar_type()});
    blocks += comm::block_count(tensor.numel());
    const auto wire = tensor.scalar_type() == at::kFloat ? options.wire : std::nullopt;
    parameters_.push_back(
        {.name = std::move(name), .tensor = std::move(tensor), .bucket = 0, .lanes = LaneSum(wire), .wire = wire});
  }
  square_sums_ = at::empty({blocks}, at::kDouble);
  const auto plan = plan_buckets(sizes, options);
  int64_t first = 0;
  for (size_t b = 0; b < plan.size(); ++b) {
    int64_t count = 0;
    for (const size_t index : plan[b]) {
      parameters_[index].bucket = b;
      count += comm::block_count(parameters_[index].tensor.numel());
    }
    buckets_.push_back({.members = plan[b],
                        .missing = 0,
                        .label = lockstep::cat("bucket ", b + 1, "/", plan.size(), " (", parameters_[plan[b][0]].name,
                                               plan[b].size() > 1 ? " …)" : ")"),
                        .square_sums = square_sums_.narrow(0, first, count),
                        .work = nullptr});
    first += count;
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[i].tensor, std::make_unique<Hook>(*this, i));
  }
}

Reducer::~Reducer() {
  for (auto& parameter : parameters_) torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
}

void Reducer::begin_lane(bool last) {
  active_ = true;
  last_ = last;
  // Backward steals a gradient where .grad is undefined, and would add to what is there.
  for (auto& parameter : parameters_) parameter.tensor.mutable_grad().reset();
  if (!last) return;
  launched_ = 0;
  for (auto& bucket : buckets_) bucket.missing = bucket.members.size();
  for (auto& parameter : parameters_) parameter.ready = false;
}

void Reducer::empty_lane(bool last) {
  begin_lane(last);
  for (size_t i = parameters_.size(); i-- > 0;) {
    parameters_[i].tensor.mutable_grad() = at::zeros_like(parameters_[i].tensor);
    on_gradient(i);
  }
}

void Reducer::on_gradient(size_t index) {
  if (!active_) return;
  Parameter& parameter = parameters_[index];
  at::Tensor& grad = parameter.tensor.mutable_grad();
  at::Tensor gradient = owned(std::exchange(grad, at::Tensor()), parameter.tensor);
  if (scale_ != 1) gradient.mul_(scale_);
  parameter.lanes.push(std::move(gradient));
  if (!last_) return;
  if (parameter.ready) throw ConfigError(parameter.name, " got a second gradient in one backward pass");
  grad = parameter.lanes.finish();
  parameter.ready = true;
  if (--buckets_[parameter.bucket].missing == 0) launch_filled();
  comm_.progress();
}

// Buckets go out in their order, which is the same on all ranks, whatever order backward fills them in.
void Reducer::launch_filled() {
  for (; launched_ < buckets_.size() && buckets_[launched_].missing == 0; ++launched_) {
    Bucket& bucket = buckets_[launched_];
    std::vector<at::Tensor> gradients;
    for (const size_t index : bucket.members) gradients.push_back(parameters_[index].tensor.grad());
    const auto wire = parameters_[bucket.members[0]].wire;  // of all: a bucket is of one dtype
    bucket.work =
        comm_.fold(std::move(gradients), {.label = bucket.label, .square_sums = bucket.square_sums, .wire = wire});
  }
}

void Reducer::finish() {
  if (launched_ < buckets_.size()) refuse_unused();
  for (auto& bucket : buckets_) {
    bucket.work->wait();
    bucket.work.reset();
  }
  square_sum_ = 0;
  const auto* sums = square_sums_.const_data_ptr<double>();
  for (int64_t i = 0; i < square_sums_.numel(); ++i) square_sum_ += sums[i];
  active_ = false;
}

std::string Reducer::first_not_finite() const {
  const auto* sum = square_sums_.const_data_ptr<double>();
  for (const auto& bucket : buckets_) {
    for (const size_t index : bucket.members) {
      const int64_t blocks = comm::block_count(parameters_[index].tensor.numel());
      if (!std::all_of(sum, sum + blocks, [](double value) { return std::isfinite(value); })) {
        return parameters_[index].name;
      }
      sum += blocks;
    }
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
                    ": the loss does not depend on them; freeze them (requires_grad false) or use them");
}

void Reducer::drop() noexcept {
  active_ = false;
  for (auto& parameter : parameters_) {
    parameter.lanes = LaneSum(parameter.wire);
    parameter.tensor.mutable_grad().reset();
  }
}

}  // namespace lockstep::parallel
