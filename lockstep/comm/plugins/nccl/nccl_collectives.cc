#include "lockstep/comm/plugins/nccl/nccl_collectives.h"

#include <ATen/ATen.h>

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/plugins/nccl/device_fold.h"
#include "lockstep/comm/square_sums.h"

namespace lockstep::comm {
namespace {

using Counts = std::vector<int64_t>;

// The tensor as bytes: NCCL then moves any dtype.
at::Tensor bytes_of(const at::Tensor& tensor, const at::Tensor& like) {
  if (!tensor.defined()) return at::empty({0}, like.options().dtype(at::kByte));
  return tensor.view({-1}).view(at::kByte);
}

class Collectives {
 public:
  Collectives(c10d::ProcessGroupNCCL& group, NcclWorks& works) : group_(group), works_(works) {}

  int rank() const { return group_.getRank(); }
  int size() const { return group_.getSize(); }

  // Numbers of bytes; empty: equal parts.
  void all_to_all(at::Tensor out, at::Tensor in, Counts receive_counts = {}, Counts send_counts = {}) {
    queue(group_.alltoall_base(out, in, receive_counts, send_counts));
  }

  void all_gather(at::Tensor out, at::Tensor in) { queue(group_._allgather_base(out, in)); }

  void all_gather_uneven(const at::Tensor& out, at::Tensor in, const Counts& counts) {
    std::vector<std::vector<at::Tensor>> outs{out.split_with_sizes(counts)};
    std::vector<at::Tensor> ins{std::move(in)};
    queue(group_.allgather(outs, ins));
  }

  void broadcast(at::Tensor tensor, int root) {
    std::vector<at::Tensor> tensors{std::move(tensor)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    queue(group_.broadcast(tensors, options));
  }

  // Reduces a row of values in place.
  void reduce(const at::Tensor& values, ReduceOp op, NcclSums sums) {
    const bool adds = (op == ReduceOp::kSum || op == ReduceOp::kMean) && values.is_floating_point();
    if (sums == NcclSums::kNccl && adds) return all_reduce(values, op);
    // Each rank reduces a slice of its own. What is too little for that, or left over, all ranks reduce.
    const int64_t slice = values.numel() < kSmall ? 0 : values.numel() / size(), sliced = slice * size();
    if (slice > 0) fold_slices(values.narrow(0, 0, sliced).view({size(), slice}), op);
    if (sliced < values.numel()) fold_rows(values.narrow(0, sliced, values.numel() - sliced), op);
  }

 private:
  static constexpr int64_t kSmall = 8192;  // elements: below it two collectives take longer than to move them all

  void all_reduce(const at::Tensor& values, ReduceOp op) {
    if (values.numel() == 0) return;
    std::vector<at::Tensor> tensors{values};
    queue(group_.allreduce(tensors));
    if (op == ReduceOp::kMean) values.div_(size());
  }

  // Each rank reduces one slice of all ranks' rows in the tree's order; then all ranks gather all slices.
  void fold_slices(const at::Tensor& slices, ReduceOp op) {
    const at::Tensor rows = at::empty_like(slices);
    all_to_all(bytes_of(rows, rows), bytes_of(slices, slices));
    const at::Tensor own = combine_rows(op, rows).contiguous();
    all_gather(bytes_of(slices, slices), bytes_of(own, own));
  }

  // All ranks gather all rows and reduce them in the tree's order.
  void fold_rows(const at::Tensor& own, ReduceOp op) {
    const at::Tensor rows = at::empty({size(), own.numel()}, own.options());
    all_gather(bytes_of(rows, rows), bytes_of(own, own));
    own.copy_(combine_rows(op, rows), /*non_blocking=*/true);
  }

  // The current stream waits for NCCL's stream; the host does not.
  void queue(c10::intrusive_ptr<c10d::Work> work) {
    work->synchronize();
    works_.push_back(std::move(work));
  }

  c10d::ProcessGroupNCCL& group_;
  NcclWorks& works_;
};

void fold(Collectives& nccl, const Call& call, NcclSums sums) {
  const DeviceRow row(call.tensors, call.fold.wire.value_or(call.tensors[0].scalar_type()));
  nccl.reduce(row.values(), ReduceOp::kSum, sums);
  row.finish();
  if (call.fold.square_sums.defined()) take_square_sums(call.tensors, call.fold.square_sums);
}

void all_reduce(Collectives& nccl, const at::Tensor& tensor, ReduceOp op, NcclSums sums) {
  const DeviceRow row({tensor}, tensor.scalar_type());
  nccl.reduce(row.values(), op, sums);
  row.finish();
}

void reduce_scatter(Collectives& nccl, const Call& call) {
  const at::Tensor in = call.input.view({nccl.size(), call.output.numel()}), rows = at::empty_like(in);
  nccl.all_to_all(bytes_of(rows, rows), bytes_of(in, in));
  call.output.view({-1}).copy_(combine_rows(call.op, rows), true);
}

// The bytes exchanged with each rank in an all_to_all, gather or scatter. A rank without counts exchanges all of `own`
// with the root, or nothing if `own` is undefined.
Counts in_bytes(const Counts& counts, const Call& call, int size, const at::Tensor& own) {
  Counts bytes(static_cast<size_t>(size), 0);
  for (size_t k = 0; k < counts.size(); ++k) bytes[k] = counts[k] * own.element_size();
  if (counts.empty() && own.defined()) bytes[static_cast<size_t>(call.peer)] = static_cast<int64_t>(own.nbytes());
  return bytes;
}

void exchange(Collectives& nccl, const Call& call) {
  const at::Tensor& like = call.input.defined() ? call.input : call.output;
  nccl.all_to_all(bytes_of(call.output, like), bytes_of(call.input, like),
                  in_bytes(call.receive_counts, call, nccl.size(), call.output),
                  in_bytes(call.send_counts, call, nccl.size(), call.input));
}

void all_gather(Collectives& nccl, const Call& call) {
  const at::Tensor in = bytes_of(call.input, call.input), out = bytes_of(call.output, call.output);
  if (!call.uneven) return nccl.all_gather(out, in);
  nccl.all_gather_uneven(out, in, in_bytes(call.receive_counts, call, nccl.size(), call.output));
}

}  // namespace

void run_on_nccl(c10d::ProcessGroupNCCL& group, const Call& call, NcclSums sums, NcclWorks& works) {
  Collectives nccl(group, works);
  switch (call.kind) {
    case OpKind::kFold:
      return fold(nccl, call, sums);
    case OpKind::kAllReduce:
      return all_reduce(nccl, call.output, call.op, sums);
    case OpKind::kReduce:
      return all_reduce(nccl, nccl.rank() == call.peer ? call.output : call.input.clone(), call.op, sums);
    case OpKind::kBroadcast:
      return nccl.broadcast(bytes_of(call.output, call.output), call.peer);
    case OpKind::kAllGather:
      return all_gather(nccl, call);
    case OpKind::kReduceScatter:
      return reduce_scatter(nccl, call);
    case OpKind::kAllToAll:
    case OpKind::kGather:
    case OpKind::kScatter:
      return exchange(nccl, call);
    case OpKind::kSend:
    case OpKind::kReceive:
    case OpKind::kBarrier:
      break;
  }
  throw BugError(name_of(call.kind), " is no collective of tensors");
}

at::Tensor gather_bytes(c10d::ProcessGroupNCCL& group, const at::Tensor& own, NcclWorks& works) {
  at::Tensor all = at::empty({group.getSize(), own.numel()}, own.options());
  Collectives(group, works).all_gather(all.view({-1}), own);
  return all;
}

}  // namespace lockstep::comm
