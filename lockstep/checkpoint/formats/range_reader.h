// The reading of many ranges of a checkpoint's files into memory, by a few threads.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/checkpoint/formats/stored_tensor.h"

namespace lockstep::checkpoint {

// Bytes of a storage that are to be read.
struct ReadRange {
  const StoredBytes* stored;
  uint64_t offset;  // in the file
  uint64_t bytes;
  char* memory;           // nullptr: they are read for their checksum alone
  bool is_read_again;     // soon, so that the system should keep a copy
  uint64_t taken = 0;     // bytes that have come, from the first on
  uint32_t checksum = 0;  // of those, unless the storage's has been compared
};

// Reads ranges of files and sums them up. What lies on a disk comes in large blocks, from which the calling thread
// copies (read_from_disk.h). What the system has in memory each of a few threads copies and sums up by itself, in
// pieces that stay in its cache. One thread.
class RangeReader {
 public:
  // `bytes` of the storage from `offset` of its file on, into memory or, where that is nullptr, for its checksum alone.
  // All of the storage, if its checksum has not been compared. Storage and memory are there until run() has returned.
  void add(const StoredBytes& stored, uint64_t offset, uint64_t bytes, void* memory, bool is_read_again = false);
  void add(const StoredBytes& stored, void* memory, bool is_read_again = false) {
    add(stored, stored.offset, stored.bytes, memory, is_read_again);
  }

  // Reads what has been added, and compares checksums that were not before. Throws DataError, IoError.
  void run();

 private:
  std::vector<ReadRange> on_disk_, in_memory_;
};

// Ends a range all of whose bytes have come: its file must be as it was, and its checksum the storage's. Throws
// DataError.
void end_range(const ReadRange& range);

}  // namespace lockstep::checkpoint
