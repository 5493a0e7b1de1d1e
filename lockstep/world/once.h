// What one rank does for all: preparing files, and means over ranks for logs.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>

#include "lockstep/world/world.h"

namespace lockstep {

enum class OnceScope {
  kWorld,  // rank 0 prepares: files that all nodes see
  kNode,   // local rank 0 of every node prepares: files on a node's own disk
};

// One rank calls `prepare` while the others wait for it, longer than for a collective: for at most `timeout`. A
// collective. If it throws, every rank throws the same type of Error, with "rank 0: …"; what is no Error becomes a
// BugError. Throws CommError if the preparing rank dies or is late.
void once(World& world, OnceScope scope, const std::function<void()>& prepare,
          std::chrono::nanoseconds timeout = std::chrono::hours(1));

// The mean over ranks of a floating-point tensor, equal on all, detached; the tensor itself stays as it is. A
// collective.
at::Tensor reduce_tensor(comm::Communicator& comm, const at::Tensor& tensor);

}  // namespace lockstep
