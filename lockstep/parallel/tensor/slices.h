// How a dimension is divided among ranks: into equal slices, by rank.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/communicator.h"

namespace lockstep::parallel::tensor {

// Throws ConfigError where `size` is no multiple of the number of ranks. `what` names it: "dimension ", 1, ….
template <typename... What>
void check_divides(int64_t size, const comm::Communicator& comm, const What&... what) {
  if (size % comm.size() == 0) return;
  throw ConfigError("tensor parallel: ", what..., " can't be divided among ", comm.size(), " ranks; choose a multiple");
}

// A view of this rank's slice.
inline at::Tensor own_slice(const at::Tensor& whole, int64_t dim, const comm::Communicator& comm) {
  const int64_t size = whole.size(dim) / comm.size();
  return whole.narrow(dim, size * comm.rank(), size);
}

}  // namespace lockstep::parallel::tensor
