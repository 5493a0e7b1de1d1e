// The fold over a network: all_to_all of slices, each slice combined in the tree's order by the member that it falls
// to, all_gather of the results. The volume of a ring all-reduce, with an order that is the tree's.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lockstep/comm/fold_tree.h"
#include "lockstep/comm/network/exchange.h"
#include "lockstep/comm/reduce.h"

namespace lockstep::comm {

// Which subtrees of the world's fold tree each member holds the values of, in the tree's order. Together they are all
// of its leaves.
struct JoinPlan {
  int leaves = 0;
  std::vector<std::vector<Subtree>> holdings;
};

// Every member holds one leaf.
JoinPlan leaves_plan(int size);

// partials[i], contiguous and of one size and dtype on all members, holds the values of the i-th subtree of this
// member. Afterwards partials[0] holds, on every member, the tree's value; divided by the number of leaves if `mean`.
void tree_join(Exchange& exchange, const JoinPlan& plan, ReduceOp op, bool mean, std::vector<at::Tensor>& partials);

// Of `rows`, [members, …] and contiguous, row k combined over all members in the tree's order goes to member k's `out`.
void tree_reduce_scatter(Exchange& exchange, ReduceOp op, const at::Tensor& rows, const at::Tensor& out);

}  // namespace lockstep::comm
