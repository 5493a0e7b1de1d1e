// What lies in a folder.
#pragma once

#include <filesystem>
#include <system_error>
#include <vector>

namespace lockstep {

// The entries of a folder, in any order; those that were found before `error` where it can't be read, or not to its
// end. (A loop over a std::filesystem::directory_iterator throws for a folder that changes under it, whatever error
// code its constructor has.)
inline std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder, std::error_code& error) {
  std::vector<std::filesystem::path> found;
  std::filesystem::directory_iterator each(folder, error), end;
  for (; !error && each != end; each.increment(error)) found.push_back(each->path());
  return found;
}

// The same of a folder that need not be there.
inline std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::error_code ignored;
  return entries_of(folder, ignored);
}

}  // namespace lockstep
