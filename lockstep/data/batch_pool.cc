#include "lockstep/data/batch_pool.h"

#include <ATen/ops/from_blob.h>

#include <mutex>
#include <utility>

namespace lockstep::data {

struct BatchPool::State {
  const std::vector<Field> fields;
  const int64_t most_rows;
  std::mutex mutex;                               // guards the rest
  std::vector<std::unique_ptr<SampleRows>> free;  // has room for all blocks that there are
  int64_t made = 0;

  std::unique_ptr<SampleRows> take() {
    {
      const std::lock_guard lock(mutex);
      if (!free.empty()) {
        auto block = std::move(free.back());
        free.pop_back();
        return block;
      }
      free.reserve(static_cast<size_t>(++made));
    }
    return std::make_unique<SampleRows>(fields, most_rows);
  }

  void give_back(SampleRows* block) {
    const std::lock_guard lock(mutex);
    free.emplace_back(block);
  }
};

BatchPool::BatchPool(std::vector<Field> fields, int64_t most_rows)
    : state_(new State{.fields = std::move(fields), .most_rows = most_rows}) {}

std::shared_ptr<SampleRows> BatchPool::take() {
  return {state_->take().release(), [state = state_](SampleRows* block) { state->give_back(block); }};
}

int64_t BatchPool::block_bytes() const { return bytes_of(state_->fields, state_->most_rows); }

int64_t BatchPool::blocks() const {
  const std::lock_guard lock(state_->mutex);
  return state_->made;
}

Batch batch_in(const std::shared_ptr<SampleRows>& block, int64_t rows) {
  Batch batch;
  batch.tensors.reserve(block->batch().tensors.size());
  for (const auto& [name, whole] : block->batch().tensors) {
    std::vector<int64_t> shape = whole.sizes().vec();
    shape[0] = rows;
    batch.tensors.emplace_back(
        name, at::from_blob(
                  whole.mutable_data_ptr(), shape, whole.strides(), [block](void*) {}, whole.options()));
  }
  return batch;
}

}  // namespace lockstep::data
