// The numbers that keep the messages of a world's groups apart: two groups that have a rank in common have different
// ones as long as both live.
#pragma once

#include <ATen/core/Tensor.h>

#include <bitset>

namespace lockstep::comm {

// The numbers in use on this rank. The ranks that make a group join theirs, and take the first that none of them uses.
// Number 0 is the whole world's. The thread that makes and destroys groups.
class GroupNumbers {
 public:
  static constexpr int kMost = 255;
  // The number of a node's rail (network_transport.h), one of which each rank has at most.
  static constexpr int kRail = 1;

  void take(int number) { used_.set(static_cast<size_t>(number)); }
  void release(int number) { used_.reset(static_cast<size_t>(number)); }

  // The numbers in use, uint8 [kMost]: 1 where the number is. Numbers 0 and kRail always are.
  at::Tensor in_use() const;
  // The first that is not; -1 if all are.
  static int first_free(const at::Tensor& in_use);

 private:
  std::bitset<kMost> used_;
};

}  // namespace lockstep::comm
