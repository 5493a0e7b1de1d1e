// A bucket under way: the gradients of some parameters, from when backward gives the first of them until their sum over
// ranks is there.
//
// Where the ranks can read each other's memory, a gradient stays where backward has put it. Elsewhere (networks, GPUs)
// the bucket is one flat tensor, into which each gradient is copied once and whose parts the parameters' .grad then
// are.
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

// How a bucket's gradients travel.
struct Transport {
  bool flat = false;                         // one tensor for all of them
  bool always_fp32 = false;                  // 16-bit gradients are added and travel in fp32
  bool through_cpu = false;                  // of a GPU, over a network library that takes CPU memory
  std::optional<at::ScalarType> wire = {};   // fp32 ones rounded to it (comm::FoldOptions)
  double multiply = 1;                       // by this, when they are added
  std::shared_ptr<CommHook> hook = nullptr;  // in place of the fold
};

// What the reduction of a bucket took in the last step.
struct BucketLog {
  std::string label;
  int64_t bytes = 0;     // of its gradients
  double in_flight = 0;  // seconds from when it was full until it was reduced
  double waited = 0;     // of those, seconds in which this rank did nothing but wait for it
};

class Bucket {
 public:
  // `members`: its parameters, whose layouts their gradients have. `square_sums`: fp64, one for each block of each.
  Bucket(size_t index, std::string label, std::vector<at::Tensor> members, at::Tensor square_sums, Transport transport);

  void begin();  // of a step
  // Takes the gradient of member `k`, which owns its memory (with always_fp32 it may be in fp32); returns what is to be
  // the parameter's .grad.
  at::Tensor put(size_t k, at::Tensor gradient);
  // The same of a 16-bit gradient, which nobody writes to any more, whose sum goes to `sum` in fp32
  // (comm::FoldOptions).
  at::Tensor put_leaf(size_t k, at::Tensor leaf, at::Tensor sum);
  bool full() const { return missing_ == 0; }

  void launch(comm::Communicator& comm);  // when full
  void finish();                          // waits until the gradients are reduced
  void drop() noexcept;

  const std::string& label() const { return in_.label; }
  const BucketLog& log() const { return log_; }

 private:
  void take_square_sums() const;

  GradBucket in_;                       // with the gradients that the parameters see
  std::vector<at::ScalarType> types_;   // of the parameters
  std::vector<at::Tensor> travelling_;  // in fp32 or on the CPU, where the gradients themselves do not
  std::vector<at::Tensor> leaves_;      // empty, or by member
  std::vector<at::Tensor> parts_;       // of the flat tensor, each laid out as its parameter
  at::Tensor square_sums_;
  Transport transport_;
  size_t missing_ = 0;
  std::shared_ptr<comm::Work> work_;
  BucketLog log_;
};

}  // namespace lockstep::parallel
