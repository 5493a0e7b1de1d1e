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

// What of a range is read at once.
struct RangePart {
  ReadRange* range;
  uint64_t offset, bytes;  // in the file
};

// Cuts the ranges where their files have a multiple of so many bytes. In the order of the ranges, which are borrowed.
std::vector<RangePart> parts_of(std::vector<ReadRange>& ranges, uint64_t largest);

// Copies the part's bytes to their place, if they have one, past the caches. Returns the checksum of bytes with the
// sum `before` and these behind them, unless the storage's has been compared. Any thread.
uint32_t deliver(const RangePart& part, const char* bytes, uint32_t before);

// Counts a part that has been delivered. The last one ends its range: the file must be as it was, and the checksum the
// storage's. Throws DataError.
void count_delivered(const RangePart& part);

// How many of so many threads are of use beside the one that calls: none on one core, or for one part.
int threads_beside(int most, int64_t parts);

}  // namespace lockstep::checkpoint
