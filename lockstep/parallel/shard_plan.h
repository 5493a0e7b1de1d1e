// Which elements of each parameter are whose, for an optimizer that is sharded. A pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::parallel {

// For each parameter the bounds of the ranks' ranges, in elements of its memory: rank r has [bounds[r], bounds[r + 1]).
// All parameters' blocks of comm::kBlockElements, one after the other, are cut into `ranks` contiguous parts of nearly
// equal numbers, so most parameters are one rank's, and a cut lies between two blocks.
std::vector<std::vector<int64_t>> plan_shards(std::span<const int64_t> elements, int ranks);

}  // namespace lockstep::parallel
