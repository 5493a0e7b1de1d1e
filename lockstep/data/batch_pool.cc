#include "lockstep/data/batch_pool.h"

#include <ATen/ops/from_blob.h>

#include <mutex>
#include <utility>

namespace lockstep::data {
namespace {

constexpr size_t kSmall = 16;  // a tensor of at most this part of its block is copied

}  // namespace

struct BatchPool::State {
  const std::vector<Field> fields;
  const int64_t most_rows;
  const size_t most_free;
  const BatchMemory memory;
  const int64_t usual;
  std::mutex mutex;                               // guards the rest
  std::vector<std::unique_ptr<SampleRows>> free;  // has room for most_free
  int64_t made = 0;

  std::unique_ptr<SampleRows> take() {
    {
      const std::lock_guard lock(mutex);
      if (!free.empty() && made >= usual) {
        auto block = std::move(free.back());
        free.pop_back();
        return block;
      }
    }
    auto block = std::make_unique<SampleRows>(fields, most_rows, memory);
    const std::lock_guard lock(mutex);
    ++made;
    return block;
  }

  void give_back(std::unique_ptr<SampleRows> block) {
    const std::lock_guard lock(mutex);
    if (free.size() < most_free) {
      free.push_back(std::move(block));
    } else {
      --made;
    }
  }
};

BatchPool::BatchPool(std::vector<Field> fields, int64_t most_rows, size_t most_free, BatchMemory memory, int64_t usual)
    : state_(new State{.fields = std::move(fields),
                       .most_rows = most_rows,
                       .most_free = most_free,
                       .memory = std::move(memory),
                       .usual = usual}) {
  state_->free.reserve(most_free);
}

std::shared_ptr<SampleRows> BatchPool::take() {
  return {state_->take().release(),
          [state = state_](SampleRows* block) { state->give_back(std::unique_ptr<SampleRows>(block)); }};
}

int64_t BatchPool::block_bytes() const { return bytes_of(state_->fields, state_->most_rows); }

int64_t BatchPool::blocks() const {
  const std::lock_guard lock(state_->mutex);
  return state_->made;
}

Batch batch_in(const std::shared_ptr<SampleRows>& block, int64_t rows) {
  size_t bytes = 0;
  for (const auto& [name, whole] : block->batch().tensors) bytes += whole.nbytes();
  Batch batch;
  batch.tensors.reserve(block->batch().tensors.size());
  for (const auto& [name, whole] : block->batch().tensors) {
    if (whole.nbytes() <= bytes / kSmall) {
      batch.tensors.emplace_back(name, whole.narrow(0, 0, rows).clone());
      continue;
    }
    std::vector<int64_t> shape = whole.sizes().vec();
    shape[0] = rows;
    batch.tensors.emplace_back(
        name, at::from_blob(
                  whole.mutable_data_ptr(), shape, whole.strides(), [block](void*) {}, whole.options()));
  }
  return batch;
}

}  // namespace lockstep::data
