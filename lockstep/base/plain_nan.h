// NaN as people read it. The NaN that x86 computes has its sign set, and prints as "-nan".
#pragma once

#include <cmath>
#include <limits>

namespace lockstep {

// Returns the value; for any NaN the one that prints as "nan".
inline double plain_nan(double value) { return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value; }

}  // namespace lockstep
