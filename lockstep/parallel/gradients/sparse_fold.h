// The sum of sparse gradients over lanes and ranks. Rows are gathered from all ranks, and rows of one index are added
// in the order of lanes.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

// Some rows of a tensor [rows, …], on the CPU: `indices` int64 [n], in any order and with repetitions; `values` [n, …].
struct SparseRows {
  at::Tensor indices, values;
};

// Returns the rows of a sparse COO gradient with one sparse dimension. Throws ConfigError that names the parameter for
// a gradient of another layout.
SparseRows rows_of(const at::Tensor& gradient, const std::string& name);

// Adds rows of equal indices in the order in which they stand. The result's indices ascend, each of them once.
SparseRows add_equal_rows(const SparseRows& rows);

// Adds the rows of all ranks in the order of ranks. `lanes` are this rank's, in order, each as add_equal_rows() returns
// it. Returns a coalesced sparse tensor of `like`'s shape, on its device. A collective. The bits do not depend on the
// number of ranks.
at::Tensor fold_sparse(const std::vector<SparseRows>& lanes, const at::Tensor& like, comm::Communicator& comm);

}  // namespace lockstep::parallel
