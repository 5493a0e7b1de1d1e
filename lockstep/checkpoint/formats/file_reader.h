// Reads regular files by descriptor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lockstep/base/shared_memory.h"

namespace lockstep::checkpoint {

struct InputFile {
  Descriptor fd;
  uint64_t bytes = 0;
};

// Opens a regular file that is not empty. Throws DataError that says what stands there instead, IoError if the system
// refuses.
InputFile open_input(const std::string& path);

// Reads [offset, offset + bytes) into `memory`. Throws IoError, or DataError if the file ends too early.
void read_at(int fd, const std::string& path, uint64_t offset, void* memory, uint64_t bytes);

}  // namespace lockstep::checkpoint
