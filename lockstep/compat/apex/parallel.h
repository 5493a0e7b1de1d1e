// apex.parallel, over lockstep/parallel.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/reduce.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/parallel/gradient_fold.h"
#include "lockstep/world/world.h"

namespace lockstep::apex::parallel {

using comm::ReduceOp;

struct DistributedDataParallelOptions {
  int64_t message_size = 10'000'000;     // the least elements of a bucket, counted as fp32
  bool delay_allreduce = false;          // buckets go out when backward is over
  bool allreduce_always_fp32 = false;    // 16-bit gradients are added and travel in fp32
  bool gradient_average = true;          // the mean over ranks; false: the sum
  double gradient_predivide_factor = 1;  // g / factor is added over ranks; the sum × factor / ranks is the average
  std::vector<at::Tensor> allreduce_trigger_params = {};  // each ends a bucket, and message_size does not count

  // Taken without effect: how Apex drives CUDA's streams, and what it keeps beside .grad.
  bool retain_allreduce_buffers = false;
  int num_allreduce_streams = 1;
  std::vector<comm::Communicator*> allreduce_communicators = {};
  std::optional<double> gradient_average_split_factor = {};
  bool prof = false;
};

// The same in Lockstep's own options. Throws ConfigError for a message_size below 1, and for allreduce_trigger_params
// with delay_allreduce.
lockstep::parallel::DdpOptions resolve(const DistributedDataParallelOptions& options);

// Drives backward by hand: forward, then ddp.backward(loss). One thread.
class DistributedDataParallel : public lockstep::parallel::DistributedDataParallel {
 public:
  // A collective: as the base's.
  DistributedDataParallel(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<World> world,
                          const DistributedDataParallelOptions& options = {});

  // From now on gradients only add up on each rank; .grad gets the mean of their sums with the first backward after
  // enable_allreduce().
  void disable_allreduce();
  void enable_allreduce() { paused_.reset(); }

 private:
  std::optional<NoSync> paused_;
};

// Averages gradients when reduce() is called, for loops that need no overlap with backward. One thread. The program
// decides the order of its collectives.
class Reducer {
 public:
  // A collective: gives all ranks rank 0's parameters and buffers. Throws ConfigError for models that differ.
  Reducer(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<World> world);

  // Replaces every parameter's .grad by the mean over ranks. A collective. Throws ConfigError, on every rank, for a
  // parameter that has a gradient on some ranks only.
  void reduce();

 private:
  std::shared_ptr<torch::nn::Module> module_;
  std::shared_ptr<World> world_;
  lockstep::parallel::GradientFold fold_;
};

// Returns the ranks, this one among them, that share BatchNorm statistics if each `group_size` neighbouring ranks do; 0
// means all ranks. Throws ConfigError unless the group size divides the world's.
std::vector<int> create_syncbn_process_group(const World& world, int group_size);

// Makes every BatchNorm in `module` a SyncBatchNorm over the ranks of `process_group` (empty: all): see
// convert_sync_batchnorm() (lockstep/parallel/sync_batch_norm.h). A collective, before DistributedDataParallel.
void convert_syncbn_model(torch::nn::Module& module, World& world, const std::vector<int>& process_group = {});

}  // namespace lockstep::apex::parallel
