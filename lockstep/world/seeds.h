// One call at the start of a program that is to give the same numbers twice.
#pragma once

#include <cstdint>

namespace lockstep {

// Seeds libtorch's generators on all devices. `deterministic`: libtorch and cuDNN choose only algorithms that repeat
// their bits, and cuDNN does not try out which is fastest; operations that have none such warn.
void init_seeds(uint64_t seed, bool deterministic);

}  // namespace lockstep
