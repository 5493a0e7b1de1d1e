// The shard plan: which rank updates which elements of each parameter under a sharded optimizer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::parallel {

// Returns, for each parameter, the bounds of the ranks' ranges in elements of its memory: rank r has [bounds[r],
// bounds[r + 1]). The blocks of all parameters (comm::kBlockElements), one after the other, are cut into `ranks`
// contiguous parts of nearly equal numbers. So most parameters belong to one rank, and every cut lies between two
// blocks. A pure function.
std::vector<std::vector<int64_t>> plan_shards(std::span<const int64_t> elements, int ranks);

// The same where each parameter is one rank's, `owners[i]`.
std::vector<std::vector<int64_t>> plan_owners(std::span<const int64_t> elements, std::span<const int> owners,
                                              int ranks);

}  // namespace lockstep::parallel
