// The encoding of a spawned function's arguments in an environment variable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launch {

// Encodes the arguments: {"ab", ""} -> "2:ab0:". Throws ConfigError if one has a zero byte, or if they exceed 100 kB.
std::string pack_arguments(const std::vector<std::string>& arguments);
// Decodes the arguments. Throws ConfigError for a text that pack_arguments() can't have written.
std::vector<std::string> unpack_arguments(std::string_view packed);

}  // namespace lockstep::launch
