// The options of DistributedDataParallel, under the names that PyTorch and Apex have for them.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/plugins/device_graph.h"
#include "lockstep/parallel/bucket_plan.h"
#include "lockstep/parallel/comm_hook.h"

namespace lockstep::parallel {

struct DdpOptions {
  BucketOptions buckets = {};
  uint64_t seed = 0;              // keys the random numbers of libtorch's kernels (dropout)
  bool broadcast_state = true;    // rank 0's weights and buffers go to all ranks at construction
  bool broadcast_buffers = true;  // rank 0's buffers go to all ranks after each step; false: each has its own

  bool keep_threads = false;  // this network's run() and evaluations leave libtorch's threads as they are (threads.h)

  int64_t first_step = 0;  // what messages call the step that run() gets as number 0: 1 where steps are counted from 1

  bool find_unused_parameters = false;  // walks each lane's graph before its backward (unused_parameters.h)
  bool static_graph = false;  // all steps use the same parameters as the first, equally often (static_graph.h)

  // The loss of run() may reach tensors that are trained and are no parameters of a wrapped network: each rank's own,
  // with the loss scale in their gradients. Otherwise they are an error of several ranks, which would not fold their
  // gradients, and of a loss scale, which nobody would take out.
  bool own_parameters = false;

  bool gradient_average = true;        // hand-driven loops get the mean over ranks, not the sum
  bool delay_allreduce = false;        // buckets are launched when backward is over
  bool allreduce_always_fp32 = false;  // 16-bit gradients are added and travel in fp32
  // Apex's order: gradients are divided by it before they are added, and their sum is multiplied by it afterwards; by
  // hand by its share of the number of ranks, and not at all without gradient_average.
  double gradient_predivide_factor = 1;
  std::vector<at::Tensor> bucket_ends = {};       // parameters each of which closes a bucket; sizes do not count then
  std::shared_ptr<CommHook> comm_hook = nullptr;  // reduces in place of the fold

  // Makes what records a step's lane on a GPU, so that later steps are one launch each; none: lanes are never recorded.
  // What the function of run() has to keep to then is in lane_graph.h. Recorded are the steps of a world of one rank
  // with one lane, one loss a step and one wrapped network, without SyncBatchNorm, sparse gradients, a comm_hook and
  // the options of unused parameters.
  comm::MakeDeviceGraph device_graph = nullptr;

  bool closes_bucket(const at::Tensor& parameter) const;  // whether it is one of bucket_ends
  void check() const;                                     // throws ConfigError for options that do not go together
  // One line for each option that all ranks give alike, for this module. Throws ConfigError for bucket_ends that are
  // none of its parameters.
  std::vector<std::string> describe(const torch::nn::Module& module) const;
  std::optional<c10::ScalarType> wire() const;  // the type in which fp32 gradients travel: the hook's or the buckets'
};

}  // namespace lockstep::parallel
