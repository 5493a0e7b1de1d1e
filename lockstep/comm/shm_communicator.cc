#include "lockstep/comm/shm_communicator.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/comm/blocks.h"

namespace lockstep::comm {
namespace {

// A tensor's elements one after the other in memory: itself, or a copy that finish() writes back.
class Dense {
 public:
  explicit Dense(const at::Tensor& tensor)
      : original_(tensor.detach()), dense_(original_.is_contiguous() ? original_ : original_.contiguous()) {}
  const at::Tensor& tensor() const { return dense_; }
  void finish() const {
    if (!dense_.is_same(original_)) original_.copy_(dense_);
  }

 private:
  at::Tensor original_, dense_;
};

}  // namespace

ShmCommunicator::ShmCommunicator(Options options, const NodeMemory& memory, Pool& pool, Board* board)
    : protocol_(options, memory, pool, board) {
  protocol_.set_meanwhile(progress_);
}

std::shared_ptr<Work> ShmCommunicator::fold(std::vector<at::Tensor> tensors, FoldOptions options) {
  check_fold(tensors, options);
  auto work = std::make_shared<ShmFold>(protocol_, std::move(tensors), std::move(options), progress_);
  folds_.push_back(work);
  return work;
}

void ShmCommunicator::progress() {
  while (!folds_.empty()) {
    folds_.front()->advance();
    if (!folds_.front()->settled()) break;
    folds_.pop_front();
  }
  // Slices of later folds may be reduced while an earlier one waits for other ranks to finish theirs.
  for (size_t i = 0; i < folds_.size() && (i == 0 || folds_[i - 1]->reduced()); ++i) folds_[i]->advance();
}

// A synchronous collective on this rank's tensor of `rows` rows, chunk by chunk: each chunk is published where it lies,
// or as a copy in the pool; act(chunk) does this rank's share once all ranks have published.
void ShmCommunicator::run(OpKind kind, uint32_t detail, const at::Tensor& tensor, int64_t rows, const Act& act,
                          bool copy_back) {
  const std::string what = name_of(kind);
  while (!folds_.empty()) {
    const auto last = folds_.back();  // which may have no other owner, and leaves the queue when it is done
    last->wait();
  }
  const auto element_size = static_cast<int64_t>(tensor.element_size());
  const int64_t row_elements = tensor.numel() / rows;
  const auto offset = tensor.numel() == 0 ? std::optional<uint64_t>(0) : protocol_.offset_of(tensor);
  at::Tensor staging;
  if (!offset)
    staging = protocol_.pool_like(
        at::empty({rows, std::min(row_elements, kChunkElements)}, at::kByte).to(tensor.scalar_type()));
  auto* data = static_cast<std::byte*>(tensor.data_ptr());
  for (int64_t first = 0; first == 0 || first < row_elements; first += kChunkElements) {
    const int64_t count = std::min(kChunkElements, row_elements - first), bytes = count * element_size;
    const auto copy = [&](bool in) {
      for (int64_t row = 0; row < rows && !offset; ++row) {
        std::byte* outside = data + (row * row_elements + first) * element_size;
        std::byte* inside = static_cast<std::byte*>(staging.data_ptr()) + row * bytes;
        std::memcpy(in ? inside : outside, in ? outside : inside, static_cast<size_t>(bytes));
      }
    };
    copy(true);
    const uint64_t begin =
        offset ? *offset + static_cast<uint64_t>(first * element_size) : *protocol_.offset_of(staging);
    const uint64_t call =
        protocol_.publish({.kind = kind,
                           .dtype = static_cast<uint32_t>(tensor.scalar_type()),
                           .detail = detail,
                           .tensors = 1,
                           .elements = tensor.numel(),
                           .sizes_hash = 0,
                           .offset = begin,
                           .stride = static_cast<uint64_t>(offset ? row_elements * element_size : bytes)},
                          what);
    protocol_.wait_published(call, what);
    act({call, first, count});
    protocol_.finish(call);
    protocol_.wait_complete(call, what);
    if (copy_back) copy(false);
  }
}

std::byte* ShmCommunicator::data_of(int rank, const Chunk& chunk, int64_t row) const {
  const OpRecord& record = protocol_.record(rank, chunk.call);
  return protocol_.at(rank, record.offset + static_cast<uint64_t>(row) * record.stride);
}

void ShmCommunicator::all_reduce(const at::Tensor& tensor, ReduceOp op) {
  check_reducible("all_reduce", tensor, op);
  const Dense dense(tensor);
  const auto dtype = tensor.scalar_type();
  const auto element_size = static_cast<int64_t>(tensor.element_size());
  const auto reduce = [&](const Chunk& chunk) {
    const Slice slice = slice_of(block_count(chunk.count), rank(), size());
    std::vector<const void*> sources(static_cast<size_t>(size()));
    for_each_block({&chunk.count, 1}, slice, [&](size_t, int64_t first, int64_t count, int64_t) {
      for (int k = 0; k < size(); ++k) sources[static_cast<size_t>(k)] = data_of(k, chunk) + first * element_size;
      std::byte* mine = data_of(rank(), chunk) + first * element_size;
      reduce_block(dtype, op, sources, mine, count);
      for (int k = 0; k < size(); ++k) {
        if (k != rank())
          std::memcpy(data_of(k, chunk) + first * element_size, mine, static_cast<size_t>(count * element_size));
      }
    });
  };
  run(OpKind::kAllReduce, static_cast<uint32_t>(op), dense.tensor(), 1, reduce, /*copy_back=*/true);
  dense.finish();
}

void ShmCommunicator::broadcast(const at::Tensor& tensor, int root) {
  if (root < 0 || root >= size()) throw BugError("broadcast: no rank ", root, " in a world of ", size());
  const Dense dense(tensor);
  const auto copy = [&](const Chunk& chunk) {
    if (rank() == root) return;
    std::memcpy(data_of(rank(), chunk), data_of(root, chunk), static_cast<size_t>(chunk.count) * tensor.element_size());
  };
  run(OpKind::kBroadcast, static_cast<uint32_t>(root), dense.tensor(), 1, copy, /*copy_back=*/true);
  dense.finish();
}

at::Tensor ShmCommunicator::all_gather(const at::Tensor& tensor) {
  const Dense dense(tensor);
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape.insert(shape.begin(), size());
  const at::Tensor all = at::empty(shape, tensor.options());
  auto* to = static_cast<std::byte*>(all.data_ptr());
  const auto element_size = static_cast<int64_t>(tensor.element_size());
  const auto copy = [&](const Chunk& chunk) {
    for (int k = 0; k < size(); ++k) {
      std::memcpy(to + (k * tensor.numel() + chunk.first) * element_size, data_of(k, chunk),
                  static_cast<size_t>(chunk.count * element_size));
    }
  };
  run(OpKind::kAllGather, 0, dense.tensor(), 1, copy, /*copy_back=*/false);
  return all;
}

at::Tensor ShmCommunicator::reduce_scatter(const at::Tensor& tensor, ReduceOp op) {
  check_reducible("reduce_scatter", tensor, op);
  check_rows("reduce_scatter", tensor, size());
  const Dense dense(tensor);
  const at::Tensor row = at::empty(tensor.sizes().slice(1), tensor.options());
  const auto element_size = static_cast<int64_t>(tensor.element_size());
  const auto reduce = [&](const Chunk& chunk) {
    std::vector<const void*> sources(static_cast<size_t>(size()));
    auto* to = static_cast<std::byte*>(row.data_ptr()) + chunk.first * element_size;
    for_each_block({&chunk.count, 1}, {0, block_count(chunk.count)},
                   [&](size_t, int64_t first, int64_t count, int64_t) {
                     for (int k = 0; k < size(); ++k) {
                       sources[static_cast<size_t>(k)] = data_of(k, chunk, rank()) + first * element_size;
                     }
                     reduce_block(tensor.scalar_type(), op, sources, to + first * element_size, count);
                   });
  };
  run(OpKind::kReduceScatter, static_cast<uint32_t>(op), dense.tensor(), size(), reduce, /*copy_back=*/false);
  return row;
}

void ShmCommunicator::barrier() {
  run(
      OpKind::kBarrier, 0, at::empty({0}), 1, [](const Chunk&) {}, /*copy_back=*/false);
}

}  // namespace lockstep::comm
