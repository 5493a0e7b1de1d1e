#include "lockstep/parallel/gradients/sparse_fold.h"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::parallel {

SparseRows rows_of(const at::Tensor& gradient, const std::string& name) {
  if (gradient.layout() != at::kSparse || gradient.sparse_dim() != 1) {
    throw ConfigError(name, ": a sparse gradient of layout ", gradient.layout(),
                      "; sparse gradients are sparse in their first dimension alone, as those of Embedding");
  }
  return {gradient._indices().select(0, 0).cpu(), gradient._values().cpu()};
}

SparseRows add_equal_rows(const SparseRows& rows) {
  const c10::AutoGradMode no_grad(false);
  const at::Tensor indices = rows.indices.contiguous();
  const auto* begin = indices.const_data_ptr<int64_t>();
  const auto* end = begin + indices.numel();
  std::vector<int64_t> kept(begin, end);
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  const at::Tensor targets = at::empty({indices.numel()}, at::kLong);
  std::transform(begin, end, targets.mutable_data_ptr<int64_t>(),
                 [&](int64_t index) { return std::lower_bound(kept.begin(), kept.end(), index) - kept.begin(); });
  std::vector<int64_t> shape = rows.values.sizes().vec();
  shape[0] = static_cast<int64_t>(kept.size());
  const at::Tensor sums = at::zeros(shape, rows.values.options());
  sums.index_add_(0, targets, rows.values);  // one row after the other
  const at::Tensor unique = at::empty({shape[0]}, at::kLong);
  std::copy(kept.begin(), kept.end(), unique.mutable_data_ptr<int64_t>());
  return {unique, sums};
}

at::Tensor fold_sparse(const std::vector<SparseRows>& lanes, const at::Tensor& like, comm::Communicator& comm) {
  const c10::AutoGradMode no_grad(false);
  std::vector<at::Tensor> indices = {at::empty({0}, at::kLong)}, values;
  std::vector<int64_t> shape = like.sizes().vec();
  shape[0] = 0;
  values.push_back(at::empty(shape, like.options().requires_grad(false).device(at::kCPU)));
  for (const auto& lane : lanes) {
    indices.push_back(lane.indices);
    values.push_back(lane.values);
  }
  const at::Tensor all_indices = at::cat(comm.all_gather_uneven(at::cat(indices)));
  const at::Tensor all_values = at::cat(comm.all_gather_uneven(at::cat(values)));
  const SparseRows sum = add_equal_rows({all_indices, all_values});
  const at::Tensor sparse = at::_sparse_coo_tensor_unsafe(sum.indices.unsqueeze(0), sum.values, like.sizes());
  return sparse._coalesced_(true).to(like.device());
}

}  // namespace lockstep::parallel
