// TCP ports for servers that are told their number before they listen.
#pragma once

#include <vector>

namespace lockstep {

// Different ports that nobody of this host has bound a moment ago. They are drawn below those that the kernel gives to
// connections, so that no connection takes one before its server starts. Throws IoError.
std::vector<int> free_ports(int count);
int free_port();

}  // namespace lockstep
