// Lanes of SyncBatchNorm as threads of a test.
#pragma once

#include <ATen/ATen.h>

#include <barrier>
#include <vector>

#include "lockstep/nn/batch_norm.h"

namespace lockstep::testing_support {

using nn::Moments;

// Of a batch split in parts, each in a thread: all meet in each call.
class Meeting {
 public:
  explicit Meeting(int lanes) : moments(static_cast<size_t>(lanes)), sums(moments.size()), barrier(lanes) {}
  std::vector<Moments> moments;
  std::vector<at::Tensor> sums;
  std::barrier<> barrier;
};

class LaneExchange : public nn::StatisticsExchange {
 public:
  LaneExchange(Meeting& meeting, size_t lane) : meeting_(meeting), lane_(lane) {}
  Moments join(const Moments& own) override {
    meet(meeting_.moments, own);
    Moments all = meeting_.moments[0];
    for (size_t i = 1; i < meeting_.moments.size(); ++i) all = joined(all, meeting_.moments[i]);
    meeting_.barrier.arrive_and_wait();
    return all;
  }
  at::Tensor add(const at::Tensor& own) override {
    meet(meeting_.sums, own);
    const at::Tensor all = at::stack(meeting_.sums).sum(0);
    meeting_.barrier.arrive_and_wait();
    return all;
  }
  bool keeps_statistics() const override { return lane_ == 0; }

 private:
  template <typename T>
  void meet(std::vector<T>& slots, const T& own) {
    slots[lane_] = own;
    meeting_.barrier.arrive_and_wait();
  }
  static Moments joined(const Moments& a, const Moments& b) {
    const at::Tensor count = a.count + b.count, share = b.count / count.clamp_min(1), delta = b.mean - a.mean;
    return {count, a.mean + delta * share, a.m2 + b.m2 + delta.square() * (a.count * share)};
  }

  Meeting& meeting_;
  size_t lane_;
};

}  // namespace lockstep::testing_support
