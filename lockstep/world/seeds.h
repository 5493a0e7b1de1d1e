// The seeding of a program whose numbers must be reproducible.
#pragma once

#include <cstdint>

namespace lockstep {

// Seeds libtorch's generators on all devices. With `deterministic`, libtorch and cuDNN use only algorithms that repeat
// their bits, and cuDNN does not benchmark algorithms; an operation without such an algorithm warns. cuBLAS and
// NCCL repeat theirs by environment variables, which come before other threads (train/device.h).
void init_seeds(uint64_t seed, bool deterministic);

}  // namespace lockstep
