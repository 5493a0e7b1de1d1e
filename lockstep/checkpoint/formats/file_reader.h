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

// The file's first bytes, at most 64, by which its format is known. Throws as read_at() does.
std::string start_of(const std::string& path, const InputFile& file);

// Reads [offset, offset + bytes) into `memory`. Throws IoError, or DataError if the file ends too early.
void read_at(int fd, const std::string& path, uint64_t offset, void* memory, uint64_t bytes);

}  // namespace lockstep::checkpoint
