#include "lockstep/comm/shm/shm_reduce.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace lockstep::comm {
namespace {

// The algorithm, as rank r of N runs it. The tensors are one sequence of blocks (blocks.h), cut into chunks_ chunks,
// and each chunk into N slices, one for each rank. A call whose tensors all lie in the pools has a single chunk. A
// tensor outside its rank's pool is staged through ring_, which holds slots_ chunks; all ranks then work chunk by
// chunk.
//
//   publish:      write table_, the offsets of the tensors in the pool, and publish the call
//   begin:        once all ranks have published: views_[k] = the memory of rank k
//   for each chunk c:
//     stage:      once chunk c - slots_ is back in the tensors: copy chunk c of the tensors outside the pool into ring_
//                 staged_ = c + 1
//     reduce:     once all ranks have staged chunk c: for each block of slice r of chunk c
//                   result = the reduction of source(0), …, source(N - 1), in the order of the fold's tree
//                   copy the result to address(k) of every rank k that gets it (deliver)
//                 reduced_ = c + 1
//     copy_back:  once all ranks have reduced chunk c: copy chunk c from ring_ into the tensors outside the pool
//                 returned_ = c + 1
//   finish:       all chunks are reduced
//   release:      once all ranks have finished: the tensors belong to the caller again
//
// Once a rank has given up its tensors may serve something else, so no rank writes to another's memory any more.
//
// Every rank thus reads and writes each byte of the data once. None of these steps waits: advance() runs those
// whose condition holds, so that stage, reduce and copy_back of different chunks overlap between ranks. A rank raises
// its counters `staged` and `reduced` in the call's record (shm_segment.h) and rings the doorbell;
// ShmNode::wait_until() calls advance() of all calls under way until the awaited one is done.

constexpr int64_t kInRing = -1, kNoLeaf = 0;

// A leaf's entry in the table: twice its offset, plus its type in the lowest bit.
int64_t leaf_entry(uint64_t offset, at::ScalarType type) {
  return static_cast<int64_t>(2 * offset) + (type == at::kHalf ? 1 : 0);
}

const std::vector<at::Tensor> tensors_of(const Call& call) {
  return call.kind == OpKind::kFold ? call.tensors : std::vector<at::Tensor>{call.input};
}

}  // namespace

ShmReduce::ShmReduce(ShmProtocol& protocol, const Call& call) : ShmReduce(protocol, call, kChunkBlocks, kSlots) {}

ShmReduce::ShmReduce(ShmProtocol& protocol, const Call& call, int64_t chunk_blocks, int64_t slots)
    : ShmCollective(protocol, call),
      tensors_(tensors_of(call)),
      square_sums_(call.fold.square_sums),
      dtype_(tensors_[0].scalar_type()),
      op_(call.kind == OpKind::kFold ? ReduceOp::kSum : call.op),
      wire_(call.fold.wire),
      root_(call.kind == OpKind::kReduce ? call.peer : -1),
      chunk_blocks_(chunk_blocks),
      slots_(slots) {
  for (const auto& tensor : tensors_) elements_.push_back(tensor.numel());
  blocks_ = block_count(elements_);
  chunk_blocks_ = std::min(chunk_blocks_, std::max<int64_t>(blocks_, 1));
  lay_out_table(call);
  publish(call);
}

// Fills the table with the offset of each tensor. Allocates a ring if a tensor is not in the pool, no larger than the
// call needs.
void ShmReduce::lay_out_table(Call call) {
  ShmNode& node = protocol_.node();
  const auto in_pool = [&](const at::Tensor& tensor) {
    return node.offset_of(tensor.const_data_ptr(), tensor.nbytes());
  };
  const auto reachable = [&](const at::Tensor& tensor) { return !tensor.defined() || in_pool(tensor); };
  const auto& leaves = call.fold.leaves;
  if (!std::all_of(leaves.begin(), leaves.end(), reachable) ||
      (!leaves.empty() && !std::all_of(tensors_.begin(), tensors_.end(), reachable))) {
    widen_leaves(call);
  }
  leaves_ = std::move(call.fold.leaves);
  table_ = node.allocate((2 * tensors_.size() + 1) * sizeof(int64_t));
  auto* table = table_.as<int64_t>();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const bool leaf = i < leaves_.size() && leaves_[i].defined() && leaves_[i].numel() > 0;
    table[tensors_.size() + 1 + i] = leaf ? leaf_entry(*in_pool(leaves_[i]), leaves_[i].scalar_type()) : kNoLeaf;
  }
  const at::Tensor& square_sums = square_sums_;
  bool staged = false;
  for (const auto& tensor : tensors_) {
    const auto offset = in_pool(tensor);
    *table++ = offset ? static_cast<int64_t>(*offset) : kInRing;
    staged = staged || !offset;
  }
  if (staged) {
    const int64_t blocks = std::min(blocks_, slots_ * chunk_blocks_);
    const int64_t count = blocks == 1 ? *std::max_element(elements_.begin(), elements_.end()) : blocks * kBlockElements;
    ring_ = node.allocate(static_cast<size_t>(count) * c10::elementSize(dtype_));
  }
  if (!square_sums.defined()) return;
  const auto offset = in_pool(square_sums);
  if (!offset) sums_block_ = node.allocate(square_sums.nbytes());
  *table = static_cast<int64_t>(offset ? *offset : sums_block_.offset);
}

void ShmReduce::publish(const Call& call) {
  number_ = protocol_.publish({.call = signature_of(call),
                               .data = table_.offset,
                               .auxiliary = ring_.offset,
                               .length = 0,
                               .staged = ring_ ? 0 : UINT64_MAX});
  chunks_ = static_cast<uint64_t>((blocks_ + chunk_blocks_ - 1) / chunk_blocks_);
  while (stage()) {
  }
}

// Once all ranks have published: locates every rank's memory, and decides whether the call is chunked.
bool ShmReduce::begin() {
  if (!views_.empty()) return true;
  if (!protocol_.published(number_)) return false;
  views_.reserve(static_cast<size_t>(protocol_.size()));
  for (int k = 0; k < protocol_.size(); ++k) {
    const OpRecord& record = protocol_.record(k, number_);
    views_.push_back({reinterpret_cast<const int64_t*>(protocol_.at(k, record.data)), protocol_.at(k, 0),
                      protocol_.at(k, record.auxiliary)});
    chunked_ = chunked_ || record.auxiliary != 0;
  }
  if (chunked_) return true;
  chunk_blocks_ = std::max<int64_t>(blocks_, 1);
  chunks_ = blocks_ > 0 ? 1 : 0;
  return true;
}

Slice ShmReduce::chunk(uint64_t index) const {
  const int64_t first = static_cast<int64_t>(index) * chunk_blocks_;
  return {first, std::min(first + chunk_blocks_, blocks_)};
}

std::byte* ShmReduce::address(int rank, size_t tensor, int64_t first, int64_t block) const {
  const View& view = views_[static_cast<size_t>(rank)];
  const auto size = static_cast<int64_t>(c10::elementSize(dtype_));
  const int64_t offset = view.table[tensor];
  if (offset != kInRing) return view.pool + offset + first * size;
  return view.ring + block % (slots_ * chunk_blocks_) * kBlockElements * size;
}

Source ShmReduce::source(int rank, size_t tensor, int64_t first, int64_t block) const {
  const View& view = views_[static_cast<size_t>(rank)];
  const int64_t leaf = view.table[elements_.size() + 1 + tensor];
  if (leaf == kNoLeaf) return {address(rank, tensor, first, block)};
  return {view.pool + leaf / 2 + 2 * first, leaf % 2 == 1 ? at::kHalf : at::kBFloat16};
}

bool ShmReduce::reduce_chunk() {
  const Slice whole = chunk(reduced_);
  const Slice own = slice_of(whole.last - whole.first, protocol_.rank(), protocol_.size());
  std::array<Source, kMaxLocalRanks> sources;
  const int target = root_ < 0 ? protocol_.rank() : root_;
  bool aborted = false;
  for_each_block(elements_, {whole.first + own.first, whole.first + own.last},
                 [&](size_t tensor, int64_t first, int64_t count, int64_t block) {
                   if ((aborted = protocol_.node().is_aborted())) return;
                   for (int k = 0; k < protocol_.size(); ++k) {
                     sources[static_cast<size_t>(k)] = source(k, tensor, first, block);
                   }
                   std::byte* result = address(target, tensor, first, block);
                   reduce_block(dtype_, op_,
                                std::span<const Source>(sources.data(), static_cast<size_t>(protocol_.size())), result,
                                count, protocol_.node().scratch(), wire_);
                   deliver(result, tensor, first, count, block);
                 });
  return !aborted;
}

void ShmReduce::deliver(const std::byte* from, size_t tensor, int64_t first, int64_t count, int64_t block) const {
  for (int k = 0; k < protocol_.size(); ++k) {
    if (root_ >= 0 && k != root_) continue;
    std::byte* to = address(k, tensor, first, block);
    if (to != from) std::memcpy(to, from, static_cast<size_t>(count) * c10::elementSize(dtype_));
  }
  if (!square_sums_.defined()) return;
  const double sum = square_sum(dtype_, from, count);
  for (const View& view : views_) {
    std::memcpy(view.pool + view.table[elements_.size()] + block * static_cast<int64_t>(sizeof sum), &sum, sizeof sum);
  }
}

void ShmReduce::copy_chunk(uint64_t index, bool in) const {
  const int64_t* table = table_.as<int64_t>();
  const size_t size = c10::elementSize(dtype_);
  for_each_block(elements_, chunk(index), [&](size_t tensor, int64_t first, int64_t count, int64_t block) {
    if (table[tensor] != kInRing) return;
    auto* outside = static_cast<std::byte*>(tensors_[tensor].data_ptr()) + static_cast<size_t>(first) * size;
    std::byte* inside =
        ring_.as<std::byte>() + static_cast<size_t>(block % (slots_ * chunk_blocks_) * kBlockElements) * size;
    std::memcpy(in ? inside : outside, in ? outside : inside, static_cast<size_t>(count) * size);
  });
}

bool ShmReduce::stage() {
  if (!ring_ || staged_ == chunks_ || staged_ >= returned_ + static_cast<uint64_t>(slots_)) return false;
  copy_chunk(staged_, /*in=*/true);
  protocol_.raise(number_, &OpRecord::staged, ++staged_);
  return true;
}

// Once the call is complete, peers may reuse their counters for another call, so these say nothing any more.
uint64_t ShmReduce::reduced_by_all() const {
  const uint64_t least = protocol_.least(number_, &OpRecord::reduced);
  return protocol_.complete(number_) ? chunks_ : std::min(least, chunks_);
}

bool ShmReduce::copy_back() {
  if (!ring_ || returned_ == reduced_ || returned_ >= reduced_by_all()) return false;
  if (root_ < 0 || root_ == protocol_.rank()) copy_chunk(returned_, /*in=*/false);
  ++returned_;
  return true;
}

bool ShmReduce::reduce() {
  if (reduced_ == chunks_ || protocol_.least(number_, &OpRecord::staged) <= reduced_) return false;
  if (protocol_.node().is_aborted() || !reduce_chunk()) return false;
  ++reduced_;
  if (chunked_) protocol_.raise(number_, &OpRecord::reduced, reduced_);
  return true;
}

void ShmReduce::advance(bool may_finish) {
  if (is_done() || !begin()) return;
  while (copy_back() || stage() || (!finished() && reduce())) {
  }
  if (!finished() && may_finish && reduced_ == chunks_) finish();
  if (finished() && (!ring_ || returned_ == chunks_) && protocol_.complete(number_)) release();
}

void ShmReduce::release() {
  if (sums_block_) std::memcpy(square_sums_.mutable_data_ptr(), sums_block_.memory.get(), square_sums_.nbytes());
  tensors_.clear();
  leaves_.clear();
  square_sums_.reset();
  table_ = PoolBlock();
  ring_ = PoolBlock();
  sums_block_ = PoolBlock();
  mark_done();
}

}  // namespace lockstep::comm
