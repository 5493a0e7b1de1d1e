#include "lockstep/comm/shm/shm_join.h"

#include <ATen/ops/from_blob.h>

#include <limits>

namespace lockstep::comm {
namespace {

at::Tensor pool_tensor(ShmNode& node, int64_t elements, at::ScalarType dtype) {
  auto block = std::make_shared<PoolBlock>(node.allocate(static_cast<size_t>(elements) * c10::elementSize(dtype)));
  return at::from_blob(
      block->memory.get(), {elements}, [block](void*) {}, at::TensorOptions(dtype));
}

}  // namespace

ShmJoin::ShmJoin(ShmProtocol& protocol, const Call& call, NodeTransport& transport)
    : ShmReduce(protocol, call, std::numeric_limits<int64_t>::max(), 1), transport_(transport), call_(call) {}

bool ShmJoin::reduce_chunk() {
  if (!begun_) {
    begun_ = true;
    if (protocol_.rank() < transport_.rails()) begin_join();
  }
  if (join_ && !delivered_) {
    if (!join_->done()) return false;
    write_result();
  }
  return !protocol_.node().is_aborted();
}

void ShmJoin::begin_join() {
  const Slice all = chunk(0), slice = slice_of(all.last - all.first, protocol_.rank(), transport_.rails());
  int64_t count = 0;
  for_each_block(elements(), slice, [&](size_t, int64_t, int64_t n, int64_t) { count += n; });
  std::vector<Source> sources;
  for (const auto& ranks : transport_.subtrees()) {
    partials_.push_back(pool_tensor(protocol_.node(), count, dtype()));
    auto* to = static_cast<std::byte*>(partials_.back().data_ptr());
    for_each_block(elements(), slice, [&](size_t tensor, int64_t first, int64_t n, int64_t block) {
      sources.clear();
      for (const int rank : ranks) sources.push_back(source(rank, tensor, first, block));
      reduce_block(dtype(), partial(op()), sources, to, n, protocol_.node().scratch(), wire());
      to += n * static_cast<int64_t>(c10::elementSize(dtype()));
    });
  }
  join_ = transport_.join(call_, partials_);
}

void ShmJoin::write_result() {
  delivered_ = true;
  auto* from = static_cast<std::byte*>(partials_[0].data_ptr());
  if (op() == ReduceOp::kMean) divide_block(dtype(), from, transport_.world_size(), partials_[0].numel());
  const Slice all = chunk(0), slice = slice_of(all.last - all.first, protocol_.rank(), transport_.rails());
  for_each_block(elements(), slice, [&](size_t tensor, int64_t first, int64_t n, int64_t block) {
    if (!protocol_.node().is_aborted()) deliver(from, tensor, first, n, block);
    from += n * static_cast<int64_t>(c10::elementSize(dtype()));
  });
  partials_.clear();
  call_ = Call();
}

}  // namespace lockstep::comm
