// The samples that each lane of each step trains on: pure functions of the options, the epoch and the step, never of
// the number of processes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/data/order.h"

namespace lockstep::data {

struct SamplerOptions {
  int64_t dataset_size = 0;
  int lanes = 1;
  int64_t batch_size = 1;  // samples a lane; the global batch has lanes × batch_size
  uint64_t seed = 0;
  bool shuffle = true;     // false: in the data set's own order, every epoch
  bool drop_last = false;  // an epoch's last global batch is left out where it is smaller than the others
  std::shared_ptr<const Order> order = nullptr;  // of an epoch; null: by `shuffle`, each sample once
};

// [first, first + count)
struct Range {
  int64_t first = 0;
  int64_t count = 0;
  bool operator==(const Range&) const = default;
};

// Lane `lane`'s part of a global batch of `samples`: contiguous and as even as possible, the first lanes one longer
// than the last. Lanes beyond `samples` get nothing.
Range lane_range(int64_t samples, int lanes, int lane);

// Returns the steps of an epoch; 0 where drop_last leaves none.
int64_t steps_of_epoch(int64_t samples, int64_t global_batch, bool drop_last);

// Deals the samples of an epoch to steps and lanes. With S lanes of B samples, the global batch of step t holds
// positions [t·S·B, (t+1)·S·B) of the epoch's order; the last one holds what is left, unless drop_last leaves it
// out. Immutable; any thread may call.
class LaneSampler {
 public:
  // Throws ConfigError for lanes or a batch size out of range, and for a drop_last that leaves nothing; DataError for
  // an empty data set.
  explicit LaneSampler(SamplerOptions options);

  const SamplerOptions& options() const { return options_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }

  // Tells a step's samples from those of data of another size, other lanes, orders and places; not the seed of draws.
  uint64_t fingerprint(uint32_t epoch, int64_t step_in_epoch) const;

  // The number of samples in a step's global batch: lanes × batch_size, fewer in the epoch's last step.
  int64_t global_batch_samples(int64_t step_in_epoch) const;

  // What a lane reads, in order; nothing for an empty lane.
  std::vector<Pick> picks(uint32_t epoch, int64_t step_in_epoch, int lane) const;
  // The numbers of its samples.
  std::vector<int64_t> lane(uint32_t epoch, int64_t step_in_epoch, int lane) const;

 private:
  void check_step(int64_t step_in_epoch) const;
  uint64_t identify() const;

  SamplerOptions options_;
  int64_t global_batch_ = 0;
  int64_t steps_per_epoch_ = 0;
  uint64_t identity_ = 0;  // of all that bears on the picks
};

}  // namespace lockstep::data
