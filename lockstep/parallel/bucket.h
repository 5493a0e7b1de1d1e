// A bucket: the gradients of some parameters, from the first that backward gives until their sum over ranks is there.
//
// Where the ranks can read each other's memory, each gradient stays where backward has put it. Elsewhere (networks,
// GPUs) the bucket is one flat tensor: each gradient is copied into it once, and the parameters' .grad share its
// memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/comm_hook.h"

namespace lockstep::parallel {

// How a bucket's gradients are stored and reduced.
struct Reduction {
  bool flat = false;                         // stored in one flat tensor
  bool always_fp32 = false;                  // 16-bit gradients are added and travel in fp32
  bool through_cpu = false;                  // from a GPU over a network library that takes CPU memory
  std::optional<at::ScalarType> wire = {};   // fp32 gradients are added and travel rounded to it (comm::FoldOptions)
  std::shared_ptr<CommHook> hook = nullptr;  // reduces in place of the fold
};

// The cost of a bucket's reduction in the last step.
struct BucketLog {
  std::string label;
  int64_t bytes = 0;     // of its gradients
  double in_flight = 0;  // seconds from its launch until it was reduced
  double waited = 0;     // of those, seconds in which this rank, or its GPU, did nothing but wait for it
};

// Used by one thread at a time. A step is begin(), a put for every parameter, launch(), finish().
class Bucket {
 public:
  // `parameters`: dense, of one dtype on one device; their gradients have their layouts. `square_sums`: fp64,
  // which finish() fills with those of the sums over ranks (comm/square_sums.h).
  Bucket(size_t index, std::string label, std::vector<at::Tensor> parameters, at::Tensor square_sums,
         Reduction reduction);

  // Begins a step; one that was left half-way is forgotten. `multiply`: the factor of the sums over ranks. `step`: its
  // number (GradBucket), the same on all ranks.
  void begin(double loss_scale = 1, double multiply = 1, uint64_t step = 0);
  // Takes the gradient of parameter `k` of the bucket. The gradient owns its memory; with always_fp32 it may be fp32.
  void put(size_t k, at::Tensor gradient);
  // The same for a bf16 or fp16 gradient of an fp32 parameter, which nobody writes to any more. The sum is fp32.
  void put_low_precision(size_t k, at::Tensor gradient);
  bool full() const { return missing_ == 0; }

  // Begins the reduction of a full bucket. All ranks launch their buckets in the same order.
  void launch(comm::Communicator& comm);
  // Waits until the gradients are reduced. Returns them by parameter, new tensors in every step that are no autograd
  // views; those of a flat bucket share its memory, which the next step writes to.
  std::vector<at::Tensor> finish();
  // Takes the square sums of these gradients, by parameter.
  void take_square_sums(std::vector<at::Tensor> gradients) const;
  void drop() noexcept;  // forgets the gradients of a step that failed

  // After finish(). On a GPU the times are known once that has reached the end of the step's reductions.
  BucketLog log() const;

 private:
  GradBucket in_;                       // the gradients as the parameters get them
  std::vector<at::Tensor> travelling_;  // copies in fp32 or on the CPU that are folded in place of the gradients
  std::vector<at::Tensor> leaves_;      // low-precision gradients by parameter, or empty (comm::FoldOptions)
  std::vector<at::Tensor> parts_;       // of the flat tensor, each laid out as its parameter
  at::Tensor square_sums_;
  Reduction reduction_;
  double multiply_ = 1;
  size_t missing_ = 0;  // gradients that have not been put
  std::shared_ptr<comm::Work> work_;
  BucketLog log_;
  std::shared_ptr<comm::Work> on_gpu_;  // the last step's reduction, where its times are known later
};

}  // namespace lockstep::parallel
