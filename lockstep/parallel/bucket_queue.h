// All buckets of a model. Each is launched as soon as it is full and all before it are launched, so that the order is
// the same on all ranks, whatever order backward fills the buckets in.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "lockstep/base/late_number.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/bucket.h"
#include "lockstep/parallel/ddp_options.h"
#include "lockstep/parallel/gradients/named_parameter.h"

namespace lockstep::parallel {

// Used by one thread at a time. Parameters are numbered as in the list that the constructor gets; sparse ones are in no
// bucket.
class BucketQueue {
 public:
  // The communicator outlives it.
  BucketQueue(const std::vector<NamedParameter>& parameters, comm::Communicator& comm, const DdpOptions& options);

  // `loss_scale`: of the step's gradients (GradBucket). `multiply`: the factor of their sums over ranks. The step's
  // number (GradBucket) tells how many have begun and how many of those were not finished: a rank on which one has
  // failed is not folded with ranks that have finished it.
  void begin_step(double loss_scale = 1, double multiply = 1);
  // Takes a parameter's gradient, which owns its memory, into its bucket.
  void put(size_t parameter, at::Tensor gradient);
  void put_low_precision(size_t parameter, at::Tensor gradient);  // as Bucket::put_low_precision()
  void launch_full();
  // Waits for all buckets, which are full and launched. Returns the sums over ranks by parameter, undefined for sparse
  // ones.
  std::vector<at::Tensor> finish();
  void drop() noexcept;  // forgets the gradients of a step that failed

  // After finish(): the sum of squares of all sums, in their order, equal at any number of ranks. Reading one of a GPU
  // waits for it, and throws if a reduction was broken off there; it is read while the communicator lives.
  LateNumber square_sum() const;
  // After finish(): on a GPU fp32 [1], 1 if a sum has an element that is not finite, else 0; elsewhere undefined.
  at::Tensor overflow() const;
  // After finish(): takes the sums of squares anew, of these gradients by parameter.
  void take_square_sums(const std::vector<at::Tensor>& gradients);
  // After finish(): the first parameter, in the order of buckets, whose sum has an element that is not finite.
  std::optional<size_t> first_not_finite() const;

  size_t size() const { return buckets_.size(); }
  BucketLog log(size_t bucket) const { return buckets_[bucket].log(); }

 private:
  struct Member {
    size_t parameter;
    int64_t square_sums;  // its gradient's number of them (comm/square_sums.h)
  };
  struct Position {
    size_t bucket = 0, member = 0;
  };

  void add_bucket(const std::vector<NamedParameter>& parameters, std::vector<Member> members, size_t planned,
                  const at::Tensor& square_sums, const DdpOptions& options);
  Bucket& bucket_of(size_t parameter) { return buckets_[positions_[parameter].bucket]; }

  comm::Communicator& comm_;
  std::vector<Bucket> buckets_;
  std::vector<std::vector<Member>> members_;  // by bucket
  std::vector<Position> positions_;           // by parameter; unused for sparse ones
  at::Tensor square_sums_;                    // fp64, of all parameters in the order of buckets
  uint64_t begun_ = 0, finished_ = 0;         // steps
  size_t launched_ = 0;                       // buckets of this step that are launched
};

}  // namespace lockstep::parallel
