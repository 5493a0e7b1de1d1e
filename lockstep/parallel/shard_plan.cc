#include "lockstep/parallel/shard_plan.h"

#include <algorithm>

#include "lockstep/comm/blocks.h"

namespace lockstep::parallel {

std::vector<std::vector<int64_t>> plan_shards(std::span<const int64_t> elements, int ranks) {
  const int64_t blocks = comm::block_count(elements);
  std::vector<std::vector<int64_t>> plan;
  int64_t before = 0;  // blocks of the parameters before
  for (const int64_t n : elements) {
    std::vector<int64_t>& bounds = plan.emplace_back();
    for (int rank = 0; rank < ranks; ++rank) {
      const int64_t first = comm::slice_of(blocks, rank, ranks).first - before;
      bounds.push_back(std::clamp<int64_t>(first * comm::kBlockElements, 0, n));
    }
    bounds.push_back(n);
    before += comm::block_count(n);
  }
  return plan;
}

std::vector<std::vector<int64_t>> plan_owners(std::span<const int64_t> elements, std::span<const int> owners,
                                              int ranks) {
  std::vector<std::vector<int64_t>> bounds;
  for (size_t i = 0; i < elements.size(); ++i) {
    std::vector<int64_t>& own = bounds.emplace_back(static_cast<size_t>(ranks) + 1, 0);
    for (int rank = owners[i]; rank < ranks; ++rank) own[static_cast<size_t>(rank) + 1] = elements[i];
  }
  return bounds;
}

}  // namespace lockstep::parallel
