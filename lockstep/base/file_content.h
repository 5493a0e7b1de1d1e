// The content of a small file.
#pragma once

#include <optional>
#include <string>

namespace lockstep {

// Reads all of a file. Nothing if it can't be read, with the reason in errno: there is no such file, it is a folder, a
// server of files has lost it. (A std::ifstream's iterators, and whoever reads its buffer, throw std::ios_failure
// then.)
std::optional<std::string> file_content(const std::string& path);

}  // namespace lockstep
