#include "lockstep/world/seeds.h"

#include <ATen/Context.h>

namespace lockstep {

void init_seeds(uint64_t seed, bool deterministic) {
  at::manual_seed(seed);
  auto& context = at::globalContext();
  context.setDeterministicAlgorithms(deterministic, /*warn_only=*/true);
  // Deterministic mode also fills fresh memory, against programs that read it: a cost of every allocation.
  context.setDeterministicFillUninitializedMemory(false);
  context.setDeterministicCuDNN(deterministic);
  context.setBenchmarkCuDNN(!deterministic);
}

}  // namespace lockstep
