#include "lockstep/parallel/replicas/replica_exchange.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/replicas/replica_threads.h"
#include "lockstep/parallel/sync_group.h"

namespace lockstep::parallel {
namespace {

at::Tensor joined(const at::Tensor& rows) {
  const nn::Moments all = combine_moments(rows);
  return at::cat({all.count, all.mean, all.m2});
}

}  // namespace

void ReplicaExchange::begin(size_t replicas) {
  rows_.assign(replicas, {});
  came_ = ended_ = 0;
  failed_ = false;
}

void ReplicaExchange::fail() {
  const std::lock_guard lock(mutex_);
  failed_ = true;
  changed_.notify_all();
}

void ReplicaExchange::end() {
  const std::lock_guard lock(mutex_);
  ++ended_;
  changed_.notify_all();
}

void ReplicaExchange::check_all_come() const {
  if (failed_) throw ReplicaCancelled();
  if (ended_ == 0) return;
  throw ConfigError("the replicas of a step do not use the same SyncBatchNorm layers: replica ",
                    ReplicaThreads::current(), " waits in one that another has left out; use plain BatchNorm there");
}

at::Tensor ReplicaExchange::meet(const at::Tensor& own,
                                 const std::function<at::Tensor(const at::Tensor& rows)>& combine) {
  std::unique_lock lock(mutex_);
  rows_[ReplicaThreads::current()] = own.cpu();
  const uint64_t before = exchanges_;
  if (++came_ == rows_.size()) {
    for (const at::Tensor& row : rows_) {
      if (row.sizes() == rows_[0].sizes()) continue;
      throw ConfigError("the replicas of a step do not use the same SyncBatchNorm layers: one has other channels");
    }
    result_ = combine(at::stack(rows_));
    came_ = 0;
    ++exchanges_;
    changed_.notify_all();
  } else {
    changed_.wait(lock, [&] { return exchanges_ != before || failed_ || ended_ > 0; });
    if (exchanges_ == before) check_all_come();
  }
  return result_.to(own.device());
}

nn::Moments ReplicaExchange::join(const nn::Moments& own) {
  const c10::AutoGradMode no_grad(false);
  const at::Tensor all = meet(at::cat({own.count, own.mean, own.m2}), joined);
  const int64_t channels = own.mean.numel();
  return {
      .count = all.narrow(0, 0, 1), .mean = all.narrow(0, 1, channels), .m2 = all.narrow(0, 1 + channels, channels)};
}

at::Tensor ReplicaExchange::add(const at::Tensor& own) {
  const c10::AutoGradMode no_grad(false);
  return meet(own.flatten(), sum_rows).view(own.sizes());
}

bool ReplicaExchange::keeps_statistics() const { return ReplicaThreads::current() == 0; }

}  // namespace lockstep::parallel
