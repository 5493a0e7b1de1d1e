#include "lockstep/optim/sparse_rows.h"

#include <ATen/ATen.h>

namespace lockstep::optim {

SparseRows::SparseRows(const at::Tensor& gradient) {
  const at::Tensor coalesced = gradient.coalesce();
  const at::Tensor indices = coalesced._indices();
  for (int64_t d = 0; d < coalesced.sparse_dim(); ++d) indices_.push_back(indices[d]);
  values_ = coalesced._values().contiguous();
}

at::Tensor SparseRows::of(const at::Tensor& whole) const { return whole.detach().index(indices_).contiguous(); }

void SparseRows::write(const at::Tensor& rows, const at::Tensor& whole) const {
  whole.detach().index_put_(indices_, rows);
}

}  // namespace lockstep::optim
