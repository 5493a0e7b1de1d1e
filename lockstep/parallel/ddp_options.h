// How DistributedDataParallel works, with the names that PyTorch and Apex have for it.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/parallel/bucket_plan.h"
#include "lockstep/parallel/comm_hook.h"

namespace lockstep::parallel {

struct DdpOptions {
  BucketOptions buckets = {};
  uint64_t seed = 0;              // keys the random numbers of libtorch's kernels (dropout)
  bool broadcast_state = true;    // at construction, from rank 0: only rank 0 needs to have loaded weights
  bool broadcast_buffers = true;  // rank 0's, whenever something reads them; false: every rank keeps its own

  bool find_unused_parameters = false;  // walks each lane's graph before its backward
  bool static_graph = false;            // the same, in the first step alone: all steps use the same parameters

  bool gradient_average = true;          // by hand: the mean over ranks, not the sum
  bool delay_allreduce = false;          // buckets go out when backward is over
  bool allreduce_always_fp32 = false;    // 16-bit gradients are added and travel in fp32
  double gradient_predivide_factor = 1;  // gradients are divided by it before they are added, multiplied afterwards
  std::shared_ptr<CommHook> comm_hook = nullptr;  // in place of the fold

  void check() const;  // throws ConfigError for what does not go together
};

}  // namespace lockstep::parallel
