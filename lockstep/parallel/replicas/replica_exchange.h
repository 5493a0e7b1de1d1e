// BatchNorm's statistics over the replicas of a network (SyncBatchNorm).
#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "lockstep/nn/batch_norm.h"

namespace lockstep::parallel {

// Called by the replicas' threads, which wait for one another. All replicas use the same layers, in the same order.
class ReplicaExchange final : public nn::StatisticsExchange {
 public:
  // Before a forward or a backward of so many replicas.
  void begin(size_t replicas);
  // Called where a replica throws, and where one has ended: those that wait for it end, too.
  void fail();
  void end();

  nn::Moments join(const nn::Moments& own) override;
  at::Tensor add(const at::Tensor& own) override;
  bool keeps_statistics() const override;  // replica 0 has the network's own

 private:
  // Returns what `combine` makes of all replicas' tensors, in the order of replicas.
  at::Tensor meet(const at::Tensor& own, const std::function<at::Tensor(const at::Tensor& rows)>& combine);
  void check_all_come() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<at::Tensor> rows_;  // by replica, of the exchange under way
  size_t came_ = 0, ended_ = 0;
  uint64_t exchanges_ = 0;
  bool failed_ = false;
  at::Tensor result_;
};

}  // namespace lockstep::parallel
