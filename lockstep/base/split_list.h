// Lists as environment variables and messages hold them.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Returns the pieces of "a,b,c"; none of an empty list. What stands behind the last comma is a piece if it is not
// empty.
inline std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    pieces.emplace_back(list.substr(at, end - at));
    at = end + 1;
  }
  return pieces;
}

}  // namespace lockstep
