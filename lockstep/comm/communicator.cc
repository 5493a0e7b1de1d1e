#include "lockstep/comm/communicator.h"

#include <c10/util/accumulate.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/blocks.h"

namespace lockstep::comm {

void check_reducible(const char* collective, const at::Tensor& tensor, ReduceOp op) {
  if (!tensor.device().is_cpu() || tensor.is_sparse() || !can_reduce(tensor.scalar_type(), op)) {
    throw BugError(collective, ": can't take the ", name_of(op), " of a ", tensor.toString());
  }
}

void check_fold(const std::vector<at::Tensor>& tensors, const FoldOptions& options) {
  if (tensors.empty()) throw BugError("fold: no tensors");
  int64_t blocks = 0;
  for (const auto& tensor : tensors) {
    check_reducible("fold", tensor, ReduceOp::kSum);
    if (!tensor.is_non_overlapping_and_dense() || tensor.scalar_type() != tensors[0].scalar_type()) {
      throw BugError("fold: tensors must be dense and of one dtype");
    }
    blocks += block_count(tensor.numel());
  }
  const auto& sums = options.square_sums;
  if (sums.defined() && (sums.scalar_type() != at::kDouble || sums.numel() != blocks || !sums.is_contiguous())) {
    throw BugError("fold: square_sums must be contiguous, fp64 and of ", blocks, " blocks");
  }
}

void check_rows(const char* collective, const at::Tensor& tensor, int size) {
  if (tensor.dim() < 1 || tensor.size(0) != size) {
    throw BugError(collective, ": the first dimension must be the number of ranks, ", size);
  }
}

}  // namespace lockstep::comm
