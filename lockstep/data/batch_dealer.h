// Whole batches dealt to ranks by turns, as Paddle's paddle.batch and distributed_batch_reader do.
#pragma once

#include <cstdint>

#include "lockstep/data/sampler.h"

namespace lockstep::data {

struct BatchDealerOptions {
  int64_t samples = 0;
  int64_t batch_size = 1;
  bool drop_last = false;  // the last batch is left out where it is smaller than the others
  int ranks = 1;
  int rank = 0;
};

// The samples, in their own order, are cut into batches; rank r of W gets the batches r, r + W, r + 2·W, … An
// incomplete last round is dropped, so that all ranks have as many. Any thread.
class BatchDealer {
 public:
  // Throws ConfigError for options out of range.
  explicit BatchDealer(BatchDealerOptions options);

  int64_t size() const { return rounds_; }  // of this rank's batches
  Range batch(int64_t number) const;        // its samples; BugError for one that this rank does not have

 private:
  BatchDealerOptions options_;
  int64_t rounds_ = 0;
};

}  // namespace lockstep::data
