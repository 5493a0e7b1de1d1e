// Random numbers of ranges, in double precision.
#pragma once

#include "lockstep/base/philox.h"

namespace lockstep::image {

inline double uniform(RandomStream& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random.uniform());
}

// [0, n); n > 0.
inline int below(RandomStream& random, int n) { return static_cast<int>(random.below(static_cast<uint32_t>(n))); }

}  // namespace lockstep::image
