// The shard plan: which rank updates which elements of each parameter under a sharded optimizer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

// Returns, for each parameter, the bounds of the ranks' ranges in elements of its memory: rank r has [bounds[r],
// bounds[r + 1]). The blocks of all parameters (comm::kBlockElements), one after the other, are cut into `ranks`
// contiguous parts of nearly equal numbers. So most parameters belong to one rank, and every cut lies between two
// blocks. A pure function.
std::vector<std::vector<int64_t>> plan_shards(std::span<const int64_t> elements, int ranks);

// The same where each parameter is one rank's, `owners[i]`.
std::vector<std::vector<int64_t>> plan_owners(std::span<const int64_t> elements, std::span<const int> owners,
                                              int ranks);

// Returns the owner of each parameter where `servers` of the ranks, as far apart as may be, keep all of them: the
// largest goes first, to the server that has least. Those of 0 elements, as frozen ones, are no work. A pure function.
// Throws ConfigError for more servers than ranks or parameters with elements.
std::vector<int> plan_servers(std::span<const int64_t> elements, int servers, int ranks);

// Throws ConfigError, which begins with `user`, on all ranks for an owner that is none of them, and where ranks give
// other owners. A collective.
void check_owners(const char* user, std::span<const int> owners, comm::Communicator& comm);

}  // namespace lockstep::parallel
