// The seeding of a program whose numbers must be reproducible.
#pragma once

#include <cstdint>

namespace lockstep {

// Seeds libtorch's generators on all devices. With `deterministic`, libtorch and cuDNN use only algorithms that repeat
// their bits, cuBLAS too (CUBLAS_WORKSPACE_CONFIG, where it is unset), and cuDNN does not benchmark algorithms; an
// operation without such an algorithm warns. Comes before other threads and the first product on a GPU.
void init_seeds(uint64_t seed, bool deterministic);

}  // namespace lockstep
