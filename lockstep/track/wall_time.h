// The time of day, as records and event files have it.
#pragma once

#include <chrono>

namespace lockstep::track {

// Seconds since 1970.
inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace lockstep::track
