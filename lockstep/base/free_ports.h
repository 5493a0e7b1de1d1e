// TCP ports for servers that are told their number before they listen.
#pragma once

#include <string_view>
#include <vector>

namespace lockstep {

// Different ports that nobody of this host has bound a moment ago. They are drawn below those that the kernel gives to
// connections, so that no connection takes one before its server starts. Throws IoError.
std::vector<int> free_ports(int count);
int free_port();

// Whether a server of this host could listen on this port now. Throws IoError.
bool is_free_port(int port);

// In the error of a rank whose port somebody has taken since it was drawn.
inline constexpr std::string_view kPortTaken = "can't listen on port ";

}  // namespace lockstep
