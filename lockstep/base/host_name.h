// The name of this host.
#pragma once

#include <string>

namespace lockstep {

// Returns the host's name, or "?" where it has none. Any thread.
std::string host_name();

}  // namespace lockstep
