// A network of the benches on threads of one process (DataParallel).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "bench_networks.h"
#include "lockstep/parallel/replicas/data_parallel.h"

namespace lockstep::worker {

class BenchReplicas {
 public:
  // options.replicas of `net`, whose weights they share.
  BenchReplicas(const apps::BenchOptions& options, const BenchNetwork& net);
  at::Tensor forward(const at::Tensor& images);

 private:
  std::vector<BenchNetwork> copies_;
  parallel::Scatterer replicas_;
};

}  // namespace lockstep::worker
