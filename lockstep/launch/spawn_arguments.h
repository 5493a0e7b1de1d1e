// Arguments of a spawned function on their way through an environment variable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launch {

// {"ab", ""} -> "2:ab0:". Throws ConfigError for a zero byte in one of them, or for more than 100 kB altogether.
std::string pack_arguments(const std::vector<std::string>& arguments);
// Throws ConfigError for what pack_arguments can't have written.
std::vector<std::string> unpack_arguments(std::string_view packed);

}  // namespace lockstep::launch
