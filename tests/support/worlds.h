// A rank of a test (ranks.h) as a world over shared memory.
#pragma once

#include <memory>

#include "lockstep/world/world.h"
#include "support/ranks.h"

namespace lockstep::testing_support {

inline std::shared_ptr<World> join_world(RankContext& context) {
  const rendezvous::Place place{.rank = context.rank,
                                .size = context.size,
                                .local_rank = context.rank,
                                .local_size = context.size,
                                .launcher = "test",
                                .rendezvous = ""};
  return std::make_shared<World>(
      place, std::move(context.memory),
      WorldOptions{.backend = context.size == 1 ? "single" : "shm", .timeout = std::chrono::seconds(30)});
}

}  // namespace lockstep::testing_support
