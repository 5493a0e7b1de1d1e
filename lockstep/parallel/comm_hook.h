// Communication hooks, which reduce a full bucket in place of the fold. PyTorch's DistributedDataParallel takes them by
// register_comm_hook.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/world/world.h"

namespace lockstep::parallel {

// A full bucket. Every rank has the same buckets and passes them to its hook in the same order.
struct GradBucket {
  size_t index = 0;                         // 0 is the bucket that backward fills first
  std::string label;                        // "bucket 2/5 (layer3.conv1.weight …)"
  std::vector<at::Tensor> parameters = {};  // whose gradients these are; of complex ones, real views
  // This rank's gradients: dense, of one dtype, on one device. Their sum over ranks is the gradient of the mean loss.
  std::vector<at::Tensor> gradients;
  double loss_scale = 1;  // in the gradients; 1 in passes by hand, whose scale nobody knows
  uint64_t step = 0;      // differs from those of other steps and passes, for comm::FoldOptions
};

class CommHook {
 public:
  virtual ~CommHook() = default;

  // A name such as "PowerSGD of rank 2", for people and for the check that all ranks use the same hook.
  virtual std::string name() const = 0;
  // Whether the sum's bits do not depend on the number of ranks.
  virtual bool same_bits() const { return false; }
  // The type that sums over one rank's lanes are rounded to (LaneSum). A hook whose bits do not depend on the number of
  // ranks gives the type that it folds in.
  virtual std::optional<at::ScalarType> wire() const { return std::nullopt; }

  // Whether each rank gets the sums of some parameters alone. A rank has no gradient of others after run(), whose
  // square sum is that of all ranks' together; backward passes by hand are refused.
  virtual bool divides() const { return false; }
  // The rank that gets that parameter's sum, from a hook that divides.
  virtual int owner_of(const at::Tensor& parameter) const;

  // Begins the reduction of a bucket. When the returned work is done, each of the bucket's gradients holds the sum over
  // ranks, in place. Works are waited for in the order of the buckets, so their wait() may begin further collectives.
  virtual std::shared_ptr<comm::Work> begin(const GradBucket& bucket, comm::Communicator& comm) = 0;

  // Called once all buckets of a step are reduced, and a divided sum's verdict is known. `finite`: whether all
  // gradients are, the same on all ranks. A step where they are not may be skipped, so a hook keeps nothing of it. A
  // step that fails before it begins anew.
  virtual void end_step(bool /*finite*/) {}

  // What the hook keeps between steps, by name, for a checkpoint: whole on rank 0 alone. Tensors may be the hook's own,
  // which its next step changes. Empty for a hook that keeps nothing. A collective.
  using State = std::map<std::string, at::Tensor>;
  virtual State state_dict() { return {}; }
  // Takes over rank 0's state, also of another number of ranks. Every rank passes the same. Throws ConfigError for a
  // state that is not of this kind of hook.
  virtual void load_state_dict(const State& state);

  // Called by the DistributedDataParallel that the hook serves. Throws ConfigError where a hook that keeps a state
  // serves another network already.
  virtual void attach(std::shared_ptr<World> /*world*/, const std::shared_ptr<torch::nn::Module>& /*network*/) {}
};

// Returns a hook that adds fp32 gradients rounded to `wire`, kHalf or kBFloat16, and sends them so, as
// BucketOptions::wire does. PyTorch has it as fp16_compress_hook and bf16_compress_hook. The bits are the same at any
// number of ranks.
std::shared_ptr<CommHook> compress_hook(at::ScalarType wire);

// Makes a hook of a user's function, which returns the work as CommHook::begin() does.
using HookFunction = std::function<std::shared_ptr<comm::Work>(const GradBucket& bucket, comm::Communicator& comm)>;
std::shared_ptr<CommHook> make_hook(std::string name, HookFunction begin);

}  // namespace lockstep::parallel
