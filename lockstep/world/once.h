// Work that one rank does for all, such as preparing files, work that fails on all ranks or on none, and means over
// ranks for logs.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <vector>

#include "lockstep/world/world.h"

namespace lockstep {

enum class OnceScope {
  kWorld,  // rank 0 prepares, for files that all nodes see
  kNode,   // local rank 0 of every node prepares, for files on a node's own disk
};

// Calls `prepare` on one rank while the others wait, for at most `timeout`, which may exceed a collective's; that rank
// then waits for them as in any collective. If `prepare` throws an Error, every rank throws an Error of the same type,
// with the text "rank 0: …"; any other exception becomes a BugError. Throws CommError if the preparing rank dies or is
// late. A collective.
void once(World& world, OnceScope scope, const std::function<void()>& prepare,
          std::chrono::nanoseconds timeout = std::chrono::hours(1));

// The same on several ranks at once; `ranks` is the same everywhere, and none is called where it is empty.
void once(World& world, const std::vector<int>& ranks, const std::function<void()>& prepare,
          std::chrono::nanoseconds timeout = std::chrono::hours(1));

// Calls `act`, which makes no collectives, on every rank. If it throws on some, every rank throws what the first of
// them has thrown, as in once(); if the ranks lose each other, its own comes before the CommError. A collective.
void together(comm::Communicator& comm, const std::function<void()>& act);

// Returns the mean over ranks of a floating-point tensor, detached and the same on all ranks. Leaves `tensor`
// unchanged. Throws BugError for other dtypes. A collective.
at::Tensor reduce_tensor(comm::Communicator& comm, const at::Tensor& tensor);

}  // namespace lockstep
