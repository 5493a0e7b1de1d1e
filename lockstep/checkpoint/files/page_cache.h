// What the system has in memory of a file.
#pragma once

#include <cstdint>

namespace lockstep::checkpoint {

// Whether the file's byte at `offset` can be read without its disk. Of a file that the caller may write to it is told
// without a request to the disk; of others the system may begin to read what it doesn't have.
bool is_in_page_cache(int fd, uint64_t offset);

}  // namespace lockstep::checkpoint
