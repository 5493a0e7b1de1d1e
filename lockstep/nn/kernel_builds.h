// Operators whose kernels oneDNN generates at their first call, in threads that compute at the same time.
// libtorch 2.11's oneDNN (3.10) may give threads that make it generate one at once a wrong kernel, and all of them
// other numbers in silence: seen of the backward of a channels_last convolution, at one start in some hundreds.
#pragma once

#include <torch/library.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <shared_mutex>
#include <unordered_set>

namespace lockstep::nn {

// The first call of each kind runs alone, later ones at the same time. Any thread.
class KernelBuilds {
 public:
  // After `most` kinds all are new again: older kernels may have made room for others by then. 0: each call is new.
  explicit KernelBuilds(size_t most) : most_(most) {}
  // `kind`: what the kernel is generated for.
  void run(uint64_t kind, const std::function<void()>& call);

 private:
  size_t most_;
  std::shared_mutex calls_;             // shared by those whose kernels are there
  std::unordered_set<uint64_t> built_;  // changed by who has `calls_` alone
};

// Has the first call of such an operator with tensors of some shapes run alone, in threads in which kThreadKey is on.
// `aten`: the library of that key's kernels.
void build_kernels_in_turn(torch::Library& aten);

}  // namespace lockstep::nn
