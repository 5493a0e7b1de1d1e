// What packings write, told from what others put beside it.
#pragma once

#include <string>

namespace lockstep::datasets {

// Names a file below `folder` that no packing wrote, or a link to a folder; `folder` itself if it can't be read. Empty
// if there is none.
std::string strange_file_in(const std::string& folder);

// Removes what packings write below `folder`, and folders that are empty then. Stays with a file that it can't remove
// and with all that others put there. Returns 0, or the errno of the first failure; ENOTEMPTY where something is left.
int remove_own_files_in(const std::string& folder);

// The same, and `folder` itself.
int remove_own_folder(const std::string& folder);

}  // namespace lockstep::datasets
