// What lies at a path, for an error that says that it is not what was looked for.
#pragma once

#include <string>

namespace lockstep::datasets {

// "found 3 folders (a, b, c) and 12 files (1.txt, 2.txt, …)", "found a file", "nothing is there". Never throws.
std::string found_there(const std::string& path);

}  // namespace lockstep::datasets
