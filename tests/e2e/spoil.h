// Files that are not what they should be.
#pragma once

#include <string>

namespace lockstep::e2e {

// A checkpoint whose pickle has `to`, as long as `from`, in every place of `from`, and its checksum put right: as sound
// a file as before, of something else. Throws BugError if the file has no such pickle.
std::string with_other_names(std::string checkpoint, const std::string& from, const std::string& to);

// A gzip file of one stored block that promises `promised` bytes, at most 65,535, and holds `bytes`; its end is
// missing.
std::string broken_gzip(const std::string& bytes, unsigned promised);

}  // namespace lockstep::e2e
