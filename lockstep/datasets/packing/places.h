// Where packed data may lie beside the data that are packed.
#pragma once

#include <string>
#include <vector>

namespace lockstep::datasets {

// The path, absolute and without links as far as it is there. Throws ConfigError if that can't be told.
std::string whole_path(const std::string& path);

// Throws ConfigError if `out`, a whole_path(), is one of the paths `data` or lies in it: a later look at the data would
// find their packed form among them. And if such data are or lie in one of the folders `cleared`, whose files a packing
// removes.
void check_places(const std::string& out, const std::vector<std::string>& data,
                  const std::vector<std::string>& cleared);

}  // namespace lockstep::datasets
