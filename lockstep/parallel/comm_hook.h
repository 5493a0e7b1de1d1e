// Communication hooks: what is done with a full bucket in place of the fold, as DistributedDataParallel's
// register_comm_hook has it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

// A full bucket. Every rank has the same buckets, and hands them out in the same order.
struct GradBucket {
  size_t index = 0;                   // 0: the first that backward fills
  std::string label;                  // "bucket 2/5 (layer3.conv1.weight …)"
  std::vector<at::Tensor> gradients;  // of this rank, dense, of one dtype and device; weighted so that the ranks' sum
                                      // is the gradient of the mean loss
};

class CommHook {
 public:
  virtual ~CommHook() = default;

  // "PowerSGD of rank 2", for people and for the check that all ranks have the same.
  virtual std::string name() const = 0;
  // Whether the sum's bits do not depend on the number of ranks.
  virtual bool same_bits() const { return false; }
  // What the lanes of one rank are rounded to as they are added (LaneSum), for a hook that keeps the bits.
  virtual std::optional<at::ScalarType> wire() const { return std::nullopt; }

  // Begins. When the work is done, each of the bucket's gradients holds the sum over ranks, in place. Works are waited
  // for in the order of the buckets, so wait() may begin further collectives.
  virtual std::shared_ptr<comm::Work> begin(const GradBucket& bucket, comm::Communicator& comm) = 0;
};

// fp32 gradients are added in kHalf or kBFloat16 and travel so, as BucketOptions::wire: PyTorch's fp16_compress_hook
// and bf16_compress_hook. The bits are the same at any number of ranks.
std::shared_ptr<CommHook> compress_hook(at::ScalarType wire);

// A user's own. The function returns the work as CommHook::begin() does.
using HookFunction = std::function<std::shared_ptr<comm::Work>(const GradBucket& bucket, comm::Communicator& comm)>;
std::shared_ptr<CommHook> make_hook(std::string name, HookFunction begin);

}  // namespace lockstep::parallel
