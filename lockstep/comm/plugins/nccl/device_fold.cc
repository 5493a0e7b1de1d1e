#include "lockstep/comm/plugins/nccl/device_fold.h"

#include <ATen/ATen.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/fold_tree.h"

namespace lockstep::comm {
namespace {

at::Tensor combine(ReduceOp op, const at::Tensor& a, const at::Tensor& b) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      return at::add(a, b);
    case ReduceOp::kMax:
      return at::maximum(a, b);
    case ReduceOp::kMin:
      return at::minimum(a, b);
    case ReduceOp::kProduct:
      return at::mul(a, b);
    case ReduceOp::kBitOr:
      return at::bitwise_or(a, b);
  }
  throw BugError("no reduction has the number ", static_cast<int>(op));
}

// A dense tensor's memory as a row, whatever its strides.
at::Tensor memory_of(const at::Tensor& tensor) { return tensor.detach().as_strided({tensor.numel()}, {1}); }

}  // namespace

at::Tensor combine_rows(ReduceOp op, const at::Tensor& rows) {
  const auto add = [op](const at::Tensor& a, const at::Tensor& b) { return combine(op, a, b); };
  LeafFold<at::Tensor> fold;
  for (int64_t k = 0; k < rows.size(0); ++k) fold.push(rows[k], add);
  at::Tensor value = fold.finish(add);
  return op == ReduceOp::kMean ? at::div(value, rows.size(0)) : value;
}

DeviceRow::DeviceRow(const std::vector<at::Tensor>& tensors, at::ScalarType wire, int ranks) {
  int64_t elements = 0;
  for (const auto& tensor : tensors) {
    flat_.push_back(memory_of(tensor));
    elements += tensor.numel();
  }
  const int64_t slice = (elements + ranks - 1) / ranks;
  slices_ = at::empty({ranks, slice}, tensors[0].options().dtype(wire).memory_format(at::MemoryFormat::Contiguous));
  const at::Tensor row = slices_.view({-1});
  int64_t offset = 0;
  for (const auto& flat : flat_) {
    row.narrow(0, offset, flat.numel()).copy_(flat, /*non_blocking=*/true);
    offset += flat.numel();
  }
  row.narrow(0, offset, row.numel() - offset).zero_();
}

void DeviceRow::finish() const {
  const at::Tensor row = slices_.view({-1});
  int64_t offset = 0;
  for (const auto& flat : flat_) {
    flat.copy_(row.narrow(0, offset, flat.numel()), /*non_blocking=*/true);
    offset += flat.numel();
  }
}

at::Tensor square_sums_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> sums;
  for (const auto& tensor : tensors) {
    const int64_t blocks = (tensor.numel() + kBlockElements - 1) / kBlockElements;
    const at::Tensor values = memory_of(tensor).to(at::kDouble);
    const at::Tensor padded = at::constant_pad_nd(values, {0, blocks * kBlockElements - tensor.numel()});
    sums.push_back(padded.view({blocks, kBlockElements}).square().sum(1));
  }
  return at::cat(sums);
}

}  // namespace lockstep::comm
