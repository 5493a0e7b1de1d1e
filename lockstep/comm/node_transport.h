// What joins the folds of several nodes: each node's ranks reduce among themselves over shared memory, and hand the
// partial sums of their slices to a transport, which brings them together with the other nodes'.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::comm {

class NodeTransport {
 public:
  virtual ~NodeTransport() = default;

  // The ranks of this node (local numbers) by maximal subtrees of the world's fold tree, in the tree's order: one list
  // of all of them where the node is a subtree.
  virtual const std::vector<std::vector<int>>& subtrees() const = 0;
  // Slices into which a node's data is divided: local rank r < rails() carries slice r between the nodes.
  virtual int rails() const = 0;
  virtual int world_size() const = 0;

  // Begins to join this rank's slice. partials[s], contiguous and all of one size and dtype, holds what the ranks of
  // subtrees()[s] give together; when the work is done, partials[0] holds the whole world's value (kMean: the sum).
  // Called in the same order on all nodes, on one thread. Empty slices are joined, too.
  virtual std::shared_ptr<Work> join(const Call& call, std::vector<at::Tensor> partials) = 0;
};

}  // namespace lockstep::comm
