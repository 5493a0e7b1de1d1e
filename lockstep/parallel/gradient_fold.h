// Data parallelism without hooks in backward: the gradients that backward left on every rank are folded at once.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/bucket_plan.h"

namespace lockstep::parallel {

// One thread. The communicator outlives it.
class GradientFold {
 public:
  // A collective: checks that all ranks hold the same model and gives them rank 0's parameters and buffers.
  // Throws ConfigError that names the first difference.
  GradientFold(const torch::nn::Module& module, comm::Communicator& comm, const BucketOptions& buckets = {});

  // Replaces every parameter's .grad by the sum over ranks, in the fold's order. Skips parameters that have a gradient
  // on no rank. A collective. Throws ConfigError, on every rank, that names a parameter which has one on some ranks
  // only.
  void run();

  // Returns each parameter once, in the module's order.
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

 private:
  std::vector<size_t> with_gradient() const;

  comm::Communicator& comm_;
  BucketOptions buckets_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
};

}  // namespace lockstep::parallel
