// Figures of all ranks as one.
#pragma once

#include <ATen/ops/full.h>

#include "lockstep/comm/communicator.h"

namespace lockstep::worker {

// The sum, or the largest, of the ranks' figures. A collective.
inline double over_ranks(double figure, comm::ReduceOp op, comm::Communicator& comm) {
  const at::Tensor number = at::full({1}, figure, at::kDouble);
  comm.all_reduce(number, op);
  return number.item<double>();
}

}  // namespace lockstep::worker
