#include "lockstep/parallel/sync_group.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/comm/fold_tree.h"

namespace lockstep::parallel {
namespace {

// The statistics of one node of the tree; the count is a tensor of one element.
struct Part {
  at::Tensor count, mean, m2;
};

Part combine(const Part& a, const Part& b) {
  const at::Tensor count = a.count + b.count;
  const at::Tensor share = b.count / count.clamp_min(1), delta = b.mean - a.mean;
  return {count, a.mean + delta * share, a.m2 + b.m2 + delta * delta * (a.count * share)};
}

}  // namespace

nn::Moments combine_moments(const at::Tensor& rows) {
  const c10::AutoGradMode no_grad(false);
  const int64_t channels = (rows.size(1) - 1) / 2;
  comm::LeafFold<Part> fold;
  for (int64_t lane = 0; lane < rows.size(0); ++lane) {
    const at::Tensor row = rows[lane];
    fold.push({row.narrow(0, 0, 1), row.narrow(0, 1, channels), row.narrow(0, 1 + channels, channels)}, combine);
  }
  Part all = fold.finish(combine);
  return {.count = std::move(all.count), .mean = std::move(all.mean), .m2 = std::move(all.m2)};
}

at::Tensor sum_rows(const at::Tensor& rows) {
  const c10::AutoGradMode no_grad(false);
  comm::LeafFold<at::Tensor> fold;
  const auto plus = [](const at::Tensor& a, const at::Tensor& b) { return a + b; };
  for (int64_t lane = 0; lane < rows.size(0); ++lane) fold.push(rows[lane], plus);
  return fold.finish(plus);
}

nn::Moments combine_moments_at_once(const at::Tensor& rows) {
  const c10::AutoGradMode no_grad(false);
  const int64_t channels = (rows.size(1) - 1) / 2;
  const at::Tensor counts = rows.narrow(1, 0, 1), means = rows.narrow(1, 1, channels);
  const at::Tensor count = counts.sum(0), mean = (counts * means).sum(0) / count.clamp_min(1);
  const at::Tensor deviations = means - mean;
  const at::Tensor m2 = rows.narrow(1, 1 + channels, channels).addcmul(counts * deviations, deviations).sum(0);
  return {.count = count, .mean = mean, .m2 = m2};
}

void SyncGroup::run(size_t lanes, const std::vector<size_t>& filled, at::Device device,
                    const std::function<void(size_t)>& lane, const LaneTurns::OnSwitch& on_switch) {
  const at::Tensor counts = ranks_->all_gather(at::full({1}, static_cast<int64_t>(filled.size()), at::kLong));
  const auto* begin = counts.const_data_ptr<int64_t>();
  const auto* end = begin + counts.numel();
  const auto first = std::find_if(begin, end, [](int64_t count) { return count > 0; });
  if (first == end) return;
  leader_ = std::find(begin, end, 0) == end ? -1 : static_cast<int>(first - begin);
  lanes_ = lanes;
  filled_ = filled;
  rows_.reset();
  if (filled.empty()) return follow(device);
  running_ = true;
  try {
    turns_.run(
        filled.size(), [&](size_t turn) { lane(filled_[turn]); }, on_switch);
  } catch (...) {
    running_ = false;
    lanes_ = 1;
    throw;
  }
  running_ = false;
  announce(0, at::kCPU);
  lanes_ = 1;
  all_.reset();
}

// Tells ranks without samples the width and the device of the rows that are gathered next. A width of 0 means that no
// more are.
void SyncGroup::announce(int64_t columns, at::Device device) {
  if (leader_ < 0) return;
  ranks_->broadcast(at::tensor({columns, static_cast<int64_t>(device.is_cpu())}, at::kLong), leader_);
}

void SyncGroup::follow(at::Device device) {
  const at::Tensor next = at::zeros({2}, at::kLong);
  for (;;) {
    ranks_->broadcast(next, leader_);
    const int64_t width = next.const_data_ptr<int64_t>()[0], on_cpu = next.const_data_ptr<int64_t>()[1];
    if (width == 0) return;
    const auto options = at::TensorOptions(on_cpu != 0 ? at::Device(at::kCPU) : device).dtype(at::kDouble);
    ranks_->all_gather(at::zeros({static_cast<int64_t>(lanes_), width}, options));
  }
}

// Takes the row of this lane, and returns the rows of all lanes of all ranks.
at::Tensor SyncGroup::gather(const at::Tensor& own) {
  const bool through_cpu = !own.is_cpu() && !ranks_->shares(own);  // as over Gloo, where GPUs' gradients do as well
  if (through_cpu) return gather(own.cpu()).to(own.device());
  if (!running_) return ranks_->all_gather(own);
  if (!rows_.defined()) rows_ = at::zeros({static_cast<int64_t>(lanes_), own.numel()}, own.options());
  if (rows_.size(1) != own.numel()) {
    throw ConfigError("the lanes of a step do not use the same SyncBatchNorm layers: lane ", filled_[turns_.current()],
                      " of this rank has one of other channels than the lane before it");
  }
  rows_[static_cast<int64_t>(filled_[turns_.current()])].copy_(own);
  turns_.meet([this] {
    const c10::AutoGradMode no_grad(false);
    announce(rows_.size(1), rows_.device());
    all_ = ranks_->all_gather(rows_).flatten(0, 1);
    rows_.reset();
  });
  return all_;
}

nn::Moments SyncGroup::join(const nn::Moments& own) {
  if (closed_) {
    throw ConfigError(
        "SyncBatchNorm: in a step with several lanes on a rank, the layers of one network alone take part; wrap the "
        "networks as one module, or use one lane a rank");
  }
  const c10::AutoGradMode no_grad(false);
  const at::Tensor rows = gather(at::cat({own.count, own.mean, own.m2}));
  return rows.is_cpu() ? combine_moments(rows) : combine_moments_at_once(rows);
}

at::Tensor SyncGroup::add(const at::Tensor& own) {
  const c10::AutoGradMode no_grad(false);
  const at::Tensor rows = gather(own.flatten());
  return (rows.is_cpu() ? sum_rows(rows) : rows.sum(0)).view(own.sizes());
}

}  // namespace lockstep::parallel
