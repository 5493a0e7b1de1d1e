// The transport between nodes, the upper level of a hierarchical reduction. The ranks of each node reduce among
// themselves over shared memory and hand the partial sums of their slices to the transport, which combines them with
// those of the other nodes.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::comm {

// The local ranks r of all nodes form rail r, which carries slice r of the data between the nodes. One thread.
class NodeTransport {
 public:
  virtual ~NodeTransport() = default;

  // The local ranks of this node, grouped by the maximal subtrees of the world's fold tree that they own, in the tree's
  // order. A node whose ranks are one subtree has one group.
  virtual const std::vector<std::vector<int>>& subtrees() const = 0;
  // The number of rails, which is the number of slices of a node's data. Local ranks from rails() on carry none.
  virtual int rails() const = 0;
  virtual int world_size() const = 0;

  // Begins to reduce this rank's slice over all nodes. partials[s] holds the reduction over the ranks of subtrees()[s];
  // all partials are contiguous and of one size and dtype. When the work is done, partials[0] holds the reduction over
  // the whole world, for kMean the sum. Called for every slice, empty ones too, in the same order on all nodes.
  virtual std::shared_ptr<Work> join(const Call& call, std::vector<at::Tensor> partials) = 0;
};

}  // namespace lockstep::comm
