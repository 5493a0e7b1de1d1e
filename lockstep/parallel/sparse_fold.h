// The sum of sparse gradients over lanes and ranks: rows are gathered, and each row's parts added in the order of
// lanes.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

// Rows of one tensor of [rows, …], on the CPU: `indices` int64 [n], in any order, with repetitions; `values` [n, …].
struct SparseRows {
  at::Tensor indices, values;
};

// The rows of a sparse COO gradient with one sparse dimension. Throws ConfigError, naming the parameter, for another.
SparseRows rows_of(const at::Tensor& gradient, const std::string& name);

// Equal indices become one, their values added in the order in which they stand. Indices ascend.
SparseRows add_equal_rows(const SparseRows& rows);

// The lanes' rows of all ranks, in the order of ranks, added up: a coalesced sparse tensor of `like`'s shape. `lanes`
// are this rank's, in order, each with its rows added (add_equal_rows). A collective. The bits do not depend on the
// number of ranks.
at::Tensor fold_sparse(const std::vector<SparseRows>& lanes, const at::Tensor& like, comm::Communicator& comm);

}  // namespace lockstep::parallel
