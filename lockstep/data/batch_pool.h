// Memory for batches that is used again and again.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/data/sample_rows.h"

namespace lockstep::data {

// Blocks of one size. A block comes back when its last owner is gone, on whatever thread that is; a batch owns its
// block as long as one of its tensors lives. Batches may outlive the pool. Any thread.
class BatchPool {
 public:
  // Each block has room for `most_rows` samples of these fields.
  BatchPool(std::vector<Field> fields, int64_t most_rows);

  // Returns a block that nobody else has: one that came back, else a new one. What it holds is undefined.
  std::shared_ptr<SampleRows> take();

  int64_t block_bytes() const;  // without what alignment adds
  int64_t blocks() const;       // made so far

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The batch of the block's first `rows` rows, whose tensors own the block.
Batch batch_in(const std::shared_ptr<SampleRows>& block, int64_t rows);

}  // namespace lockstep::data
