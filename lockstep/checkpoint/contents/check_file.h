// Checks a checkpoint's file from its first byte to its last.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::checkpoint {

// What a whole file holds.
struct CheckedFile {
  size_t tensors = 0, values = 0;
  uint64_t bytes = 0;  // of the file
};

// Reads the whole file: every entry of an archive with its checksum, also those that no tensor needs; whether the
// headers before the entries say what the directory says; the pickle, and that its tensors lie within their storages.
// Throws DataError that names the fault and the entry, IoError if the file can't be read.
CheckedFile check_file(const std::string& path);

}  // namespace lockstep::checkpoint
