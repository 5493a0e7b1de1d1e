#include "lockstep/comm/shm_fold.h"

#include <cstring>

#include "lockstep/base/text.h"
#include "lockstep/comm/blocks.h"

namespace lockstep::comm {
namespace {

// FNV-1a over the numbers of elements: equal lists have equal hashes, and a slip shows.
uint64_t hash_of(const std::vector<int64_t>& numbers) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const int64_t number : numbers) hash = (hash ^ static_cast<uint64_t>(number)) * 0x100000001b3;
  return hash;
}

int64_t sum_of(const std::vector<int64_t>& numbers) {
  int64_t sum = 0;
  for (const int64_t number : numbers) sum += number;
  return sum;
}

}  // namespace

ShmFold::ShmFold(ShmProtocol& protocol, std::vector<at::Tensor> tensors, FoldOptions options,
                 const std::function<void()>& progress)
    : protocol_(protocol),
      progress_(progress),
      dtype_(tensors[0].scalar_type()),
      square_sums_(options.square_sums.defined()),
      what_(lockstep::cat("fold of ", options.label)) {
  for (const auto& tensor : tensors) {
    elements_.push_back(tensor.numel());
    add(tensor, /*copy_in=*/true);
  }
  if (square_sums_) add(options.square_sums, /*copy_in=*/false);
  table_ = protocol_.pool_like(at::empty({static_cast<int64_t>(parts_.size())}, at::kLong));
  auto* offsets = table_.mutable_data_ptr<int64_t>();
  for (const auto& part : parts_) *offsets++ = static_cast<int64_t>(*protocol_.offset_of(part.shared));
  call_ = protocol_.publish({.kind = OpKind::kFold,
                             .dtype = static_cast<uint32_t>(dtype_),
                             .detail = square_sums_,
                             .tensors = static_cast<uint32_t>(tensors.size()),
                             .elements = sum_of(elements_),
                             .sizes_hash = hash_of(elements_),
                             .offset = *protocol_.offset_of(table_),
                             .stride = 0},
                            what_);
}

void ShmFold::add(const at::Tensor& tensor, bool copy_in) {
  at::Tensor shared = tensor;
  if (!protocol_.offset_of(tensor)) {
    shared = protocol_.pool_like(tensor);
    if (copy_in) std::memcpy(shared.mutable_data_ptr(), tensor.const_data_ptr(), tensor.nbytes());
  }
  parts_.push_back({tensor, shared});
}

const int64_t* ShmFold::table_of(int rank) const {
  return reinterpret_cast<const int64_t*>(protocol_.at(rank, protocol_.record(rank, call_).offset));
}

void ShmFold::reduce_slice() {
  const int size = protocol_.size();
  const auto self = static_cast<size_t>(protocol_.rank());
  const size_t element_size = c10::elementSize(dtype_);
  std::vector<const int64_t*> tables;
  for (int k = 0; k < size; ++k) tables.push_back(table_of(k));
  std::vector<std::byte*> ranks(static_cast<size_t>(size));
  std::vector<const void*> sources(ranks.size());
  const auto locate = [&](size_t part, size_t offset) {
    for (size_t k = 0; k < ranks.size(); ++k) {
      sources[k] = ranks[k] = protocol_.at(static_cast<int>(k), static_cast<uint64_t>(tables[k][part])) + offset;
    }
  };
  const Slice slice = slice_of(block_count(elements_), protocol_.rank(), size);
  for_each_block(elements_, slice, [&](size_t tensor, int64_t first, int64_t count, int64_t block) {
    locate(tensor, static_cast<size_t>(first) * element_size);
    reduce_block(dtype_, ReduceOp::kSum, sources, ranks[self], count);
    for (size_t k = 0; k < ranks.size(); ++k) {
      if (k != self) std::memcpy(ranks[k], ranks[self], static_cast<size_t>(count) * element_size);
    }
    if (!square_sums_) return;
    const double sum = square_sum(dtype_, ranks[self], count);
    locate(elements_.size(), static_cast<size_t>(block) * sizeof(double));
    for (std::byte* rank : ranks) std::memcpy(rank, &sum, sizeof sum);
  });
}

void ShmFold::advance() {
  if (!reduced_ && protocol_.published(call_)) {
    reduce_slice();
    protocol_.finish(call_);
    reduced_ = true;
  }
  if (reduced_ && !settled_ && protocol_.complete(call_)) settle();
}

void ShmFold::settle() {
  for (const auto& [original, shared] : parts_) {
    if (shared.is_same(original)) continue;
    std::memcpy(original.mutable_data_ptr(), shared.const_data_ptr(), original.nbytes());
  }
  parts_.clear();
  table_.reset();
  settled_ = true;
}

bool ShmFold::done() {
  progress_();
  return settled_;
}

void ShmFold::wait() {
  if (!reduced_) protocol_.wait_published(call_, what_);
  progress_();  // in the order of the calls: those before this one are published too
  if (!settled_) protocol_.wait_complete(call_, what_);
  progress_();
}

}  // namespace lockstep::comm
