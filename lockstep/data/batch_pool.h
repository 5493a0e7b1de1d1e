// Memory for batches that is used again and again.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/data/sample_rows.h"

namespace lockstep::data {

// Blocks of one size. A block comes back when its last owner is gone, on whatever thread that is; a batch owns its
// block as long as one of its large tensors lives. Batches may outlive the pool. Any thread.
class BatchPool {
 public:
  // Each block has room for `most_rows` samples of these fields. Blocks that come back are freed where `most_free`
  // wait. `memory`: of the blocks, such as pinned memory where a GPU trains. `usual`: how many there are before one is
  // used again, so that what is needed at times is taken at the beginning, and the process does not grow later.
  BatchPool(std::vector<Field> fields, int64_t most_rows, size_t most_free, BatchMemory memory = {}, int64_t usual = 1);

  // Returns a block that nobody else has: one that came back, or a new one. What it holds is undefined.
  std::shared_ptr<SampleRows> take();

  int64_t block_bytes() const;  // without what alignment adds
  int64_t blocks() const;       // that there are

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The batch of the block's first `rows` rows. Its tensors own the block, but for those of at most a sixteenth of its
// bytes: they are copies, so that a few targets that are kept don't keep their images.
Batch batch_in(const std::shared_ptr<SampleRows>& block, int64_t rows);

}  // namespace lockstep::data
