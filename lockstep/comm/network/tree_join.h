// The fold over a network. An all_to_all brings slice k of all values to member k, which combines them in the tree's
// order; an all_gather distributes the results. The volume is that of a ring all-reduce, the order is the tree's.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lockstep/comm/fold_tree.h"
#include "lockstep/comm/network/exchange.h"
#include "lockstep/comm/reduce.h"

namespace lockstep::comm {

// The subtrees of the world's fold tree whose values each member holds. Together they have all leaves of the tree.
struct JoinPlan {
  int leaves = 0;
  std::vector<std::vector<Subtree>> holdings;  // by member, each in the tree's order
};

// The plan in which every one of `size` members holds one leaf.
JoinPlan leaves_plan(int size);

// Combines the members' partial results in the tree's order. partials[i] holds the value of this member's i-th subtree;
// all partials are contiguous, and of one size and dtype on all members. Afterwards partials[0] holds the whole tree's
// value on every member, for kMean divided by the number of leaves. Throws MeshError.
void tree_join(Exchange& exchange, const JoinPlan& plan, ReduceOp op, std::vector<at::Tensor>& partials);

// Combines `rows`, [members, …], over all members in the tree's order; row k goes to `out`, […], of member k. Both are
// contiguous. Throws MeshError.
void tree_reduce_scatter(Exchange& exchange, ReduceOp op, const at::Tensor& rows, const at::Tensor& out);

}  // namespace lockstep::comm
