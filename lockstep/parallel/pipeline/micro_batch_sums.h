// The micro-batches of a pipeline's stage added up as DistributedDataParallel adds lanes.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <vector>

#include "lockstep/parallel/gradients/lane_sum.h"

namespace lockstep::parallel {

// Gradients add up by the fold's tree, and the stage keeps the buffers that its first micro-batch has left. One thread.
class MicroBatchSums {
 public:
  // Of a step; `weights` have no gradient yet.
  MicroBatchSums(const torch::nn::Module& stage, const std::vector<at::Tensor>& weights);

  void after_first_forward();
  // Takes a micro-batch's gradients out of .grad.
  void after_backward();
  // Puts the sums into .grad.
  void finish();

 private:
  std::vector<at::Tensor> weights_, buffers_;
  std::vector<LaneSum> sums_;              // by weight
  std::vector<at::Tensor> first_buffers_;  // copies
};

}  // namespace lockstep::parallel
