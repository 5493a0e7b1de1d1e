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

// The rows as one where each begins in memory where the one before ends; else undefined.
at::Tensor joined(const std::vector<at::Tensor>& rows) {
  int64_t elements = 0;
  for (const auto& row : rows) {
    if (!row.is_alias_of(rows[0]) || row.storage_offset() != rows[0].storage_offset() + elements) return {};
    elements += row.numel();
  }
  return rows[0].as_strided({elements}, {1});
}

}  // namespace

at::Tensor combine_rows(ReduceOp op, const at::Tensor& rows) {
  const auto add = [op](const at::Tensor& a, const at::Tensor& b) { return combine(op, a, b); };
  LeafFold<at::Tensor> fold;
  for (int64_t k = 0; k < rows.size(0); ++k) fold.push(rows[k], add);
  at::Tensor value = fold.finish(add);
  return op == ReduceOp::kMean ? at::div(value, rows.size(0)) : value;
}

DeviceRow::DeviceRow(const std::vector<at::Tensor>& tensors, at::ScalarType wire) {
  std::vector<at::Tensor> rows;
  for (const auto& tensor : tensors) rows.push_back(memory_of(tensor));
  values_ = joined(rows);
  if (values_.defined() && values_.scalar_type() == wire) return;
  copied_ = std::move(rows);
  int64_t elements = 0;
  for (const auto& row : copied_) elements += row.numel();
  values_ = at::empty({elements}, tensors[0].options().dtype(wire).memory_format(at::MemoryFormat::Contiguous));
  visit_parts([](const at::Tensor& part, const at::Tensor& row) { part.copy_(row, /*non_blocking=*/true); });
}

void DeviceRow::finish() const {
  visit_parts([](const at::Tensor& part, const at::Tensor& row) { row.copy_(part, /*non_blocking=*/true); });
}

template <typename Visit>
void DeviceRow::visit_parts(Visit&& visit) const {
  int64_t first = 0;
  for (const auto& row : copied_) {
    visit(values_.narrow(0, first, row.numel()), row);
    first += row.numel();
  }
}

}  // namespace lockstep::comm
