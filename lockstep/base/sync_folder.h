// Brings the names in a folder to the disk.
#pragma once

#include <string>

namespace lockstep {

// Waits until files that were made, renamed or removed in `folder` are so on the disk as well. False, with errno, if
// the disk fails. A folder that can't be opened, or that its file system can't sync, counts as done: nothing more is
// possible there.
bool sync_folder(const std::string& folder);

}  // namespace lockstep
